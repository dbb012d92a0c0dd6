//go:build linux || darwin

package engine

import (
	_ "embed"
	"slices"
	"strings"
	"sync"
)

// What people may ask is a list of what is allowed, since a list of what is forbidden can never be complete: the engine
// has some 1,800 functions and every version brings more. The setting readonly=1 alone does not make the engine safe to
// show: the library counts as a local tool of its user, so that setting still lets through SYSTEM SHUTDOWN, KILL QUERY,
// INTO OUTFILE, the function file() on any path, and the network through DESCRIBE of url() and its like.
//
// The list is the second line of defence. The first is that people's statements run in a process of their own, which the
// operating system confines (package sqlport): what gets past the list reaches neither files nor the network.

//go:embed allowed.txt
var allowedText string

//go:embed denied.txt
var deniedText string

// vocabulary is what may be before a bracket, in lower case: functions, and for aggregates the combinators that may
// follow their names.
type vocabulary struct{ functions, aggregates map[string]bool }

var allowed = sync.OnceValue(func() vocabulary {
	v := vocabulary{map[string]bool{}, map[string]bool{}}
	for _, line := range listed(allowedText) {
		name, kind, _ := strings.Cut(strings.ToLower(line), " ")
		v.functions[name] = true
		if kind == "aggregate" {
			v.aggregates[name] = true
		}
	}
	return v
})

var denied = sync.OnceValue(func() map[string]bool { return words(strings.Join(listed(deniedText), " ")) })

// listed are the lines of a list without its comments.
func listed(text string) []string {
	return slices.DeleteFunc(strings.Split(text, "\n"), func(line string) bool { return line == "" || strings.HasPrefix(line, "#") })
}

// combinators may end an aggregate's name. Those that make or read states of aggregates are not among them: a state is a
// format of the engine's own, and reading a forged one has ended engines.
var combinators = []string{"if", "array", "distinct", "foreach", "ordefault", "ornull", "argmin", "argmax", "map", "resample"}

func (v vocabulary) allows(function string) bool {
	function = strings.ToLower(function)
	if v.functions[function] {
		return true
	}
	for shortened := true; shortened; {
		shortened = false
		for _, c := range combinators {
			if base, ok := strings.CutSuffix(function, c); ok && base != "" {
				if v.aggregates[base] {
					return true
				}
				function, shortened = base, true
				break
			}
		}
	}
	return false
}

// tableFunctions may be used in place of a table. The last are not functions but views with parameters, which are asked like one: the engine has no
// function of that name, and what their parameters may be is judged as every other text is.
var tableFunctions = words("numbers numbers_mt generateSeries generate_series values view zeros zeros_mt null v_universe_at")

// syntax may be before a bracket without being a function: keywords, and types with parameters.
var syntax = words(`all and any array as asc asof between by case columns cross cube desc distinct else end except exists explain
	filter filling final first from full global group grouping having ilike in inner interpolate intersect interval into is join
	last lateral left like limit natural not nulls offset on or order outer over partition preceding prewhere qualify range
	replace right rollup row rows sample select semi sets some step strict table then ties to totals union using values when
	where window with within apply anti describe desc ast syntax plan pipeline estimate tree query
	decimal decimal32 decimal64 decimal128 decimal256 datetime datetime64 fixedstring nullable lowcardinality array map tuple
	enum enum8 enum16 time64 numeric dec char varchar nested date timestamp cast extract trim`)

// systemTables may be read of database system: what clients ask to show what there is. The others show the server, of
// what others ask, or start something.
var systemTables = words(`one numbers numbers_mt zeros zeros_mt functions table_functions formats data_type_families databases tables columns
	settings time_zones keywords collations aggregate_function_combinators table_engines database_engines merge_tree_settings licenses
	codecs data_skipping_indices dictionaries views current_roles enabled_roles user_defined_functions`)

// showable may follow SHOW.
var showable = words("tables full databases schemas create columns fields dictionaries functions settings setting index indexes indices keys table database view extended temporary")

func words(text string) map[string]bool {
	set := map[string]bool{}
	for _, w := range strings.Fields(text) {
		set[strings.ToLower(w)] = true
	}
	return set
}

// permit judges a statement of people; nil lets it through. kind is the engine's own judgement; hidden are names of
// tables that are kept from them.
func permit(kind class, q *request, hidden []string) error {
	readonly := func(why string) error { return exception(codeReadonly, why) }
	switch kind {
	case readOnly:
	case unparsed:
		// The engine itself reports best where the mistake is. But of several statements it would run those before it.
		if strings.Contains(q.sql, ";") {
			return exception(codeSyntax, "Syntax error, or multi-statements, which are not allowed")
		}
	default:
		return readonly("only reading is allowed here")
	}
	switch q.shape.first {
	case "SELECT", "WITH", "FROM", "(", "SHOW", "EXPLAIN", "DESCRIBE", "DESC", "EXISTS":
	default:
		if kind == readOnly {
			return readonly("only SELECT, SHOW, DESCRIBE, EXISTS and EXPLAIN are allowed here")
		}
	}
	if err := permitText(q.sql, hidden); err != nil {
		return err
	}
	if strings.EqualFold(q.session.database, "system") {
		return readonly("database system cannot be the default one here; name its tables as system.NAME")
	}
	for _, p := range q.params {
		if strings.Contains(q.sql, "Identifier") {
			// A name in a parameter is taken as it is, so it must be one that could be in the text.
			if strings.ContainsAny(p.value, "(\\/`\"'") || permitText(p.value, hidden) != nil || words("system " + strings.Join(hidden, " "))[strings.ToLower(p.value)] {
				return readonly("the name in parameter " + p.name + " is not allowed here")
			}
		}
	}
	return nil
}

// permitText holds the tokens of a statement against what is allowed.
func permitText(sql string, hidden []string) error {
	readonly := func(why string) error { return exception(codeReadonly, why) }
	var tokens []token
	scan(sql, func(t token) bool { tokens = append(tokens, t); return true })
	at := func(i int) token {
		if i < 0 || i >= len(tokens) {
			return token{kind: end}
		}
		return tokens[i]
	}
	type bracket struct {
		before string // the word before it, in lower case
		within bool   // it is, or lies in, the brackets of a function which takes functions
	}
	var open []bracket
	for i, t := range tokens {
		next := at(i + 1)
		var in bracket
		if len(open) > 0 {
			in = open[len(open)-1]
		}
		switch {
		case t.kind != other:
		case t.text == "(":
			open = append(open, bracket{strings.ToLower(at(i - 1).text), in.within || takesFunctions(at(i-1))})
		case t.text == ")" && len(open) > 0:
			open = open[:len(open)-1]
		}
		switch t.kind {
		case literal:
			// Engines take a path for a table, and a type's name for the type.
			if before := at(i - 1); before.is("FROM") && !fromInside[in.before] || before.is("JOIN") || before.is("TABLE") || before.is("DESCRIBE") || before.is("DESC") {
				return readonly("files are not read here: " + t.text)
			}
			if strings.Contains(strings.ToLower(t.text), "aggregatefunction") {
				return readonly("states of aggregates are not allowed here")
			}
			continue
		case other:
			continue
		case name:
			if strings.Contains(sql[t.start:t.end], `\`) || strings.Contains(t.text, "/") {
				return readonly("a backslash or a slash in a quoted name is not allowed here: " + t.text)
			}
		case word:
			for _, c := range t.text {
				if c >= 0x80 {
					return readonly("a name with other than ASCII letters needs quotes, and quotes must be straight: " + t.text)
				}
			}
		}
		if slices.Contains(hidden, t.text) {
			return readonly(t.text + " is kept from this interface; an operator asks it by `marketlog sql`")
		}
		lower := strings.ToLower(t.text)
		if lower == "show" && i == 0 && !showable[strings.ToLower(next.text)] {
			return readonly("SHOW " + next.text + " is not allowed here")
		}
		if lower == "system" && next.text == "." && !systemTables[strings.ToLower(at(i+2).text)] {
			return readonly("system." + at(i+2).text + " is not allowed here")
		}
		if lower == "apply" && t.kind == word {
			if err := permitApplied(tokens[i+1:]); err != nil {
				return err
			}
		}
		if next.kind != other || next.text != "(" {
			if in.within && denied()[lower] {
				return readonly(t.text + " is the name of a function that is not allowed here; a column of that name must be renamed in a subquery first")
			}
			continue
		}
		if t.kind == word && syntax[lower] || tableFunctions[lower] || allowed().allows(t.text) {
			continue
		}
		if denied()[lower] {
			return readonly("the function " + t.text + " is not allowed here")
		}
		return exception(codeUnknownFunction, "Function with name "+quoteName(t.text)+" does not exist, or is not allowed here")
	}
	return nil
}

// fromInside are functions in whose brackets FROM is not a clause.
var fromInside = words("trim extract substring substr overlay position")

// takesFunctions lists the functions that take a function, for which its bare name will do.
func takesFunctions(function token) bool {
	lower := strings.ToLower(function.text)
	return (function.kind == word || function.kind == name) && (strings.HasPrefix(lower, "array") || strings.HasPrefix(lower, "map") || lower == "apply")
}

// permitApplied judges what follows APPLY: a function by its bare name, or a lambda, whose calls are judged as all others.
func permitApplied(rest []token) error {
	for len(rest) > 0 && rest[0].text == "(" {
		rest = rest[1:]
	}
	if len(rest) > 2 && rest[1].text == "-" && rest[2].text == ">" {
		return nil
	}
	if len(rest) > 0 && (rest[0].kind == word || rest[0].kind == name) && allowed().allows(rest[0].text) {
		return nil
	}
	return exception(codeReadonly, "APPLY takes a lambda, or a function that is allowed here, by its name")
}
