//go:build linux || darwin

package engine

import (
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

// shaping are settings, besides those of a prefix in shapes, that change what an answer holds or how it looks, and nothing else.
var shaping = words(`extremes session_timezone join_use_nulls group_by_use_nulls transform_null_in aggregate_functions_null_for_empty
	union_default_mode except_default_mode intersect_default_mode final limit offset totals_mode join_algorithm
	any_join_distinct_right_table_keys prefer_column_name_to_alias cast_keep_nullable date_time_overflow_behavior
	date_time_output_format precise_float_parsing input_format_null_as_default describe_compact_output
	describe_include_subcolumns enable_unaligned_array_join asterisk_include_alias_columns formatdatetime_parsedatetime_m_is_month_name`)

var shapes = []string{"output_format_", "format_csv_", "format_tsv_", "format_custom_", "bool_true_", "bool_false_"}

// ofWriting are settings of statements that write, which are refused for what they are.
var ofWriting = words(`async_insert wait_for_async_insert wait_for_async_insert_timeout async_insert_timeout async_insert_busy_timeout_ms
	mutations_sync alter_sync replication_alter_partitions_sync lightweight_deletes_sync insert_quorum insert_deduplicate insert_deduplication_token
	max_insert_block_size max_insert_threads select_sequential_consistency distributed_ddl_task_timeout allow_experimental_object_type
	max_partitions_per_insert_block input_format_import_nested_json async_insert_max_data_size wait_end_of_query log_queries log_comment
	max_query_size receive_timeout send_timeout connect_timeout http_connection_timeout http_send_timeout http_receive_timeout
	use_query_cache load_balancing prefer_localhost_replica allow_experimental_analyzer enable_http_compression`)

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
				return nil, exception(codeBadArguments, "the setting "+s.name+" is no number: "+strconv.Quote(s.value))
			}
			if v > 0 && v < limit { // 0 means without a limit
				settled = append(settled, s)
			}
		case known && value == s.value, ofWriting[s.name]:
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
