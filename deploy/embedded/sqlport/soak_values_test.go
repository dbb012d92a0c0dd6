//go:build linux || darwin

package sqlport

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/marketlog/marketlog/deploy/embedded/engine"
)

// soakValues are arguments by type, many at the ends of their ranges. They are used in a query over rows of a, a UInt64, and s, its text.
var soakValues = map[string][]string{
	"number": {"a", "toFloat64(a)", "0", "1", "-1", "2", "3", "10", "255", "65536", "9223372036854775807", "-9223372036854775808", "18446744073709551615", "0.5", "1e308", "-1e-308",
		"nan", "inf", "toNullable(a)", "toInt256(-1)", "toUInt128(7)", "toBFloat16(1)", "toDecimal64(a, 4)", "toDecimal128('-1.5', 18)", "toUInt8(a)", "toInt32(a)", "toFloat32(a)",
		"CAST(NULL AS Nullable(UInt64))", "toLowCardinality(a)", "true"},
	"count": {"1", "0", "2", "3", "10", "100", "toUInt8(a)", "a", "255", "65536"},
	"string": {"s", "''", "'a'", "'%'", "'\\0'", "'a,b,c'", "repeat('a', 65536)", "toLowCardinality(s)", "toNullable(s)", "toFixedString('ab', 4)", "'UTC'", "'day'", "'{\"a\":[1,2]}'",
		"'2026-01-01 00:00:00'", "'(.*)(a)'", "'ü€𝄞'", "CAST(NULL AS Nullable(String))", "unhex('fffe80')", "'http://a.example/b?c=d#e'", "'1.2.3.4'"},
	"text":     {"'UTC'", "'day'", "'UInt8'", "'$.a'", "'a'", "''", "'%Y'", "'hour'", "'Asia/Tokyo'"},
	"date":     {"toDate(a % 60000)", "toDate32('1900-01-01')", "toDate('2149-06-06')", "toDate32('2299-12-31')", "toNullable(toDate(a))"},
	"datetime": {"toDateTime(a * 1000)", "toDateTime64(a, 9)", "toDateTime64('1900-01-01 00:00:00', 3)", "toDateTime('2106-02-07 06:28:15')", "toDateTime(a, 'Asia/Tokyo')", "now()"},
	"interval": {"INTERVAL 1 HOUR", "INTERVAL 1 MONTH", "INTERVAL -9 YEAR", "INTERVAL 1 NANOSECOND"},
	"array":    {"[a, 1, 2]", "[1]", "[1, 2, 3]", "[1.5, nan]", "range(10)", "emptyArrayUInt8()", "[NULL, 1]", "arrayWithConstant(1000, a)"},
	"strings":  {"[s, '']", "emptyArrayString()", "['a', 'b']", "[NULL, 'a']"},
	"arrays":   {"[[1], []]", "[[1, 2], [3]]"},
	"map":      {"map(s, a)", "map('a', 1, 'b', 2)", "CAST(map() AS Map(String, UInt64))", "map(a, s)"},
	"tuple":    {"(a, s)", "(1, 2)", "(1.5, 2.5)", "tuple(a)", "((1, 2), 3)"},
	"points":   {"[(0., 0.), (1., 1.), (1., 0.)]", "[(0., 0.), (0., 0.)]", "[(nan, inf), (1., 2.)]"},
	"lambda":   {"x -> x", "x -> x > 1", "x -> toString(x)", "x -> NULL"},
	"lambda2":  {"(x, y) -> x + y", "(x, y) -> x", "(k, v) -> v > 0", "(k, v) -> (k, v)"},
	"uuid":     {"toUUID('00000000-0000-0000-0000-000000000001')", "generateUUIDv4()"},
	"ipv4":     {"toIPv4('1.2.3.4')", "toIPv4('255.255.255.255')"},
	"ipv6":     {"toIPv6('::1')", "toIPv6('::ffff:1.2.3.4')"},
	"bool":     {"true", "a % 2 = 0", "1", "0"},
	"null":     {"NULL"},
	"json":     {"'{\"a\":{\"b\":[1,2,null]},\"c\":\"d\"}'", "'[1,[2,{\"a\":1e400}]]'", "'{'", "''"},
}

var soakKinds = slices.Sorted(func(yield func(string) bool) {
	for kind := range soakValues {
		if !yield(kind) {
			return
		}
	}
})

// kindOf returns the kind of each value that is one of soakValues, the first of those that it belongs to.
var kindOf = func() map[string]string {
	kinds := map[string]string{}
	for _, kind := range soakKinds {
		for _, value := range soakValues[kind] {
			if kinds[value] == "" {
				kinds[value] = kind
			}
		}
	}
	return kinds
}()

// value is one of a kind; "" means any.
func (s *soak) value(kind string) string {
	values := soakValues[kind]
	if len(values) == 0 {
		values = soakValues[soakKinds[s.random.IntN(len(soakKinds))]]
	}
	return values[s.random.IntN(len(values))]
}

// another is a value of the same kind; what is not a single value stays.
func (s *soak) another(value string) string {
	if kind, ok := kindOf[value]; ok {
		return s.value(kind)
	}
	return s.vary(value)
}

var literals = regexp.MustCompile(`'(?:[^'\\]|\\.)*'|\b\d+\b`)

// vary replaces one literal of a text by another of its kind.
func (s *soak) vary(text string) string {
	all := literals.FindAllStringIndex(text, -1)
	if len(all) == 0 || s.random.IntN(2) == 0 {
		return text
	}
	at := all[s.random.IntN(len(all))]
	fresh := []string{"0", "1", "7", "255", "65536", "4294967296", "9223372036854775807"}
	if text[at[0]] == '\'' {
		fresh = []string{"''", "'a'", "'%'", "'\\0'", "'ü'", "'2026-01-01'", "'" + strings.Repeat("x", 300) + "'"}
	}
	return text[:at[0]] + fresh[s.random.IntN(len(fresh))] + text[at[1]:]
}

// argument is what a function takes at a place.
type argument struct {
	types    []string // kinds of soakValues; "" is any
	optional bool
}

var (
	documentedArgument = regexp.MustCompile("(?m)^\\s*-\\s*`([^`]+)`(.*)$")
	documentedType     = regexp.MustCompile("\\[?`([^`]+)`\\]?")
	documentedQuery    = regexp.MustCompile("(?s)```sql[^\n]*\n(.*?)```")
)

// documented reads what the engine reports about its functions: the arguments of each, and the statements that it gives as examples.
func documented(e *engine.Engine) (signatures map[string][]argument, examples []string, err error) {
	text, err := e.Ask("SELECT name, arguments, examples FROM system.functions", "JSONCompactEachRow")
	if err != nil {
		return nil, nil, err
	}
	signatures = map[string][]argument{}
	for line := range strings.Lines(text) {
		var row [3]string
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			return nil, nil, fmt.Errorf("reading what the engine says of its functions: %w", err)
		}
		for _, a := range documentedArgument.FindAllStringSubmatch(row[1], -1) {
			described := argument{optional: strings.Contains(strings.ToLower(a[2]), "optional")}
			for _, kind := range documentedType.FindAllStringSubmatch(a[2], -1) {
				if known := kindNamed(kind[1]); known != "?" {
					described.types = append(described.types, known)
				}
			}
			if len(described.types) == 0 {
				described.types = []string{""}
			}
			signatures[row[0]] = append(signatures[row[0]], described)
		}
		for _, query := range documentedQuery.FindAllStringSubmatch(row[2], -1) {
			if statement := strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(query[1]), ";")); !strings.Contains(statement, ";") && len(statement) < 1000 {
				examples = append(examples, statement)
			}
		}
	}
	return signatures, examples, nil
}

// kindNamed is the kind of a type as the engine's documentation calls it; "?" if it is unknown.
func kindNamed(text string) string {
	lower := strings.ToLower(text)
	for _, k := range []struct{ part, kind string }{
		{"lambda", "lambda"}, {"array(string", "strings"}, {"array(array", "arrays"}, {"array", "array"}, {"map", "map"}, {"tuple", "tuple"},
		{"point", "tuple"}, {"const string", "text"}, {"fixedstring", "string"}, {"string", "string"}, {"ring", "points"}, {"polygon", "points"}, {"enum", "string"}, {"datetime", "datetime"}, {"date", "date"}, {"time", "datetime"},
		{"interval", "interval"}, {"uint8", "count"}, {"int", "number"}, {"float", "number"}, {"decimal", "number"}, {"uuid", "uuid"}, {"ipv4", "ipv4"}, {"ipv6", "ipv6"}, {"bool", "bool"},
		{"null", "null"}, {"json", "json"}, {"any", ""}, {"expression", ""}, {"number", "number"},
	} {
		if strings.Contains(lower, k.part) {
			return k.kind
		}
	}
	return "?"
}
