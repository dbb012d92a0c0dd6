//go:build linux || darwin

package engine

import (
	"iter"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// rules state which settings people may give with a statement. Clients send many of their own accord; only what would change
// a limit or have an effect outside of the answer is refused.
type rules struct {
	limits  map[string]float64 // the greatest value of those that bound a statement
	inForce map[string]string  // of all settings of a connection, by name
}

// shaping are settings, besides those of a prefix in shapes, that change what an answer holds or how it looks, and nothing else. JDBC sets
// result_overflow_mode with its greatest number of rows: the answer is cut there instead of failing. Whether columns are read by way of the
// cache is anybody's choice too.
var shaping = words(`result_overflow_mode extremes session_timezone join_use_nulls group_by_use_nulls transform_null_in aggregate_functions_null_for_empty
	union_default_mode except_default_mode intersect_default_mode final limit offset totals_mode join_algorithm
	any_join_distinct_right_table_keys prefer_column_name_to_alias cast_keep_nullable date_time_overflow_behavior
	date_time_output_format precise_float_parsing input_format_null_as_default describe_compact_output
	describe_include_subcolumns enable_unaligned_array_join asterisk_include_alias_columns formatdatetime_parsedatetime_m_is_month_name
	use_uncompressed_cache`)

var shapes = []string{"output_format_", "format_csv_", "format_tsv_", "format_custom_", "bool_true_", "bool_false_"}

// ofWriting are settings of statements that write, which are refused for what they are.
var ofWriting = words(`async_insert wait_for_async_insert wait_for_async_insert_timeout async_insert_timeout async_insert_busy_timeout_ms
	mutations_sync alter_sync replication_alter_partitions_sync lightweight_deletes_sync insert_distributed_sync distributed_foreground_insert
	database_replicated_enforce_synchronous_settings insert_quorum insert_deduplicate insert_deduplication_token
	max_insert_block_size max_insert_threads select_sequential_consistency distributed_ddl_task_timeout allow_experimental_object_type
	max_partitions_per_insert_block input_format_import_nested_json async_insert_max_data_size wait_end_of_query log_queries log_comment
	max_query_size receive_timeout send_timeout connect_timeout http_connection_timeout http_send_timeout http_receive_timeout
	use_query_cache load_balancing prefer_localhost_replica allow_experimental_analyzer enable_http_compression`)

// taken is the condition in SQL that a row of system.settings is of a setting that settle takes with another value too.
func (r rules) taken() string {
	var conditions, names []string
	for _, prefix := range shapes {
		conditions = append(conditions, "startsWith(name, "+quoteString(prefix)+")")
	}
	for _, of := range []iter.Seq[string]{maps.Keys(shaping), maps.Keys(ofWriting), maps.Keys(r.limits)} {
		for name := range of {
			names = append(names, quoteString(name))
		}
	}
	slices.Sort(names)
	return "name != 'output_format_schema' AND (name IN (" + strings.Join(slices.Compact(names), ", ") + ") OR " + strings.Join(conditions, " OR ") + ")"
}

// showSettings makes a statement see in the column readonly of system.settings which settings may be given here. The engine reports that none may: to
// it they are fixed when a connection is opened. Drivers look there, and refuse to send what they find read-only: clickhouse-connect, by which
// dbt works, does not connect.
func (r rules) showSettings(sql string) string {
	if !strings.Contains(sql, "settings") {
		return sql
	}
	var tokens []token
	scan(sql, func(t token) bool { tokens = append(tokens, t); return true })
	if !slices.ContainsFunc(tokens, func(t token) bool { return t.kind != literal && (t.text == "readonly" || t.text == "*") }) {
		return sql // who does not look there gets messages about the statement as it is
	}
	for i := len(tokens) - 4; i >= 0; i-- {
		reads, table := tokens[i].is("FROM") || tokens[i].is("JOIN"), tokens[i+1:]
		if !reads || table[0].text != "system" || table[1].text != "." || table[2].text != "settings" || table[0].kind == literal || table[2].kind == literal {
			continue
		}
		// Its columns may be named after it, if nothing else names it.
		alias := " AS settings"
		if len(table) > 3 && (table[3].kind == name || table[3].kind == word && !behindTable[strings.ToLower(table[3].text)]) {
			alias = ""
		}
		sql = sql[:table[0].start] + "(SELECT * REPLACE (toUInt8(readonly AND NOT (" + r.taken() + ")) AS readonly) FROM system.settings)" + alias + sql[table[2].end:]
	}
	return sql
}

// behindTable are the words that may follow the name of a table and are not an alias of it.
var behindTable = words("on using where prewhere group having order limit offset format union except intersect settings final sample join inner left right full cross any all asof array global window qualify")

// settle returns the settings to run a statement with: those that bound it at most as high as the limits, without those
// that change nothing. An error names the one that is refused.
func (r rules) settle(given []setting) ([]setting, error) {
	var settled []setting
	for _, s := range given {
		limit, bounded := r.limits[s.name]
		switch value, known := r.inForce[s.name]; {
		case bounded:
			v, err := strconv.ParseFloat(s.value, 64)
			if err != nil || v < 0 || math.IsNaN(v) {
				return nil, exception(codeBadArguments, "the setting "+s.name+" is not a number: "+strconv.Quote(s.value))
			}
			if v > 0 && v < limit { // 0 means without a limit
				settled = append(settled, s)
			}
		case known && value == s.value, ofWriting[s.name], s.name == "readonly" && s.value == "2": // all that is read only already
		case s.name == "output_format_schema": // it would write a file
			return nil, exception(codeReadonly, "Cannot modify 'output_format_schema' setting in readonly mode")
		case shaping[s.name], slices.ContainsFunc(shapes, func(prefix string) bool { return strings.HasPrefix(s.name, prefix) }):
			if len(s.value) > 200 {
				return nil, exception(codeBadArguments, "the value of the setting "+s.name+" is longer than 200 bytes")
			}
			settled = append(settled, s)
		case !known && len(r.inForce) > 0:
			return nil, exception(codeUnknownSetting, "Unknown setting '"+s.name+"'")
		default:
			return nil, exception(codeReadonly, "Cannot modify '"+s.name+"' setting in readonly mode; it is "+strconv.Quote(value)+" here")
		}
	}
	return settled, nil
}
