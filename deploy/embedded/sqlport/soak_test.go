//go:build linux || darwin

package sqlport

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/marketlog/marketlog/deploy/embedded/engine"
	"github.com/marketlog/marketlog/stream/streamtest"
)

// soakVariable says how long TestRandomStatements asks; a few seconds otherwise.
const soakVariable = "MARKETLOG_SOAK"

var learn = flag.Bool("learn", false, "add the calls that TestRandomStatements found answered to testdata/calls.txt")

// callsFile holds, of each function, argument lists that the engine took, so that most statements run from the first second on:
// function and arguments, separated by tabs.
const callsFile = "testdata/calls.txt"

// soakWanted is the least share of statements, in percent, that must be answered: where most are refused, nothing is tried.
const soakWanted = 60

// soakLeast is how many statements are asked, however long a busy machine takes for them: of twenty, too few are answered by chance
// once in twenty runs.
const soakLeast = 150

// soakListsKept bounds the argument lists of a function that callsFile keeps.
const soakListsKept = 4

// soak makes statements of the functions that are allowed.
type soak struct {
	random     *rand.Rand
	functions  []string
	aggregates map[string]bool
	signatures map[string][]argument
	examples   []string
	// good are argument lists that were answered, by function; names are their functions.
	good  map[string][][]string
	names []string
}

// made is a statement, and what it was made of.
type made struct {
	text      string
	function  string
	arguments []string // nil: nothing is learned of it
}

func newSoak(t *testing.T, random *rand.Rand, owner *engine.Engine) *soak {
	t.Helper()
	list, err := os.ReadFile(filepath.Join("..", "engine", "allowed.txt"))
	if err != nil {
		t.Fatal(err)
	}
	s := &soak{random: random, aggregates: map[string]bool{}, good: map[string][][]string{}}
	for line := range strings.Lines(string(list)) {
		if name, kind, _ := strings.Cut(strings.TrimSpace(line), " "); name != "" && name != "#" {
			s.functions = append(s.functions, name)
			s.aggregates[name] = kind == "aggregate"
		}
	}
	if s.signatures, s.examples, err = documented(owner); err != nil {
		t.Fatal(err)
	}
	calls, err := os.ReadFile(callsFile)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(calls)) {
		if words := strings.Split(strings.TrimSuffix(line, "\n"), "\t"); slices.Contains(s.functions, words[0]) {
			s.learn(words[0], words[1:])
		}
	}
	return s
}

// learn remembers an argument list that was answered.
func (s *soak) learn(function string, arguments []string) {
	known := s.good[function]
	if slices.ContainsFunc(known, func(other []string) bool { return slices.Equal(other, arguments) }) || len(known) >= 50 {
		return
	}
	if len(known) == 0 {
		s.names = append(s.names, function)
	}
	s.good[function] = append(known, arguments)
}

// statement makes the next one.
func (s *soak) statement() made {
	if s.random.IntN(10) == 0 && len(s.examples) > 0 {
		return made{text: s.vary(s.examples[s.random.IntN(len(s.examples))])}
	}
	m := s.call(3)
	m.text = fmt.Sprintf("SELECT %s FROM (SELECT number AS a, toString(number) AS s FROM numbers(%d))", m.text, 1+s.random.IntN(100))
	return m
}

// call makes a call of a function: with arguments that were taken before, one of them replaced by another of its type, or with
// arguments of the types that are documented. At depth 0 nothing nests in it.
func (s *soak) call(depth int) made {
	fresh := 1 // of eight
	if *learn {
		fresh = 6
	}
	if len(s.names) > 0 && s.random.IntN(8) >= fresh {
		m := made{function: s.names[s.random.IntN(len(s.names))]}
		known := s.good[m.function]
		m.arguments = slices.Clone(known[s.random.IntN(len(known))])
		if len(m.arguments) > 0 {
			at := s.random.IntN(len(m.arguments))
			switch pick := s.random.IntN(8); {
			case pick < 5:
				m.arguments[at] = s.another(m.arguments[at])
			case pick == 5 && depth > 0:
				if inner := s.call(depth - 1); len(inner.text) < 500 {
					m.arguments[at] = inner.text
				}
			}
		}
		m.text = s.write(m)
		return m
	}
	m := made{function: s.functions[s.random.IntN(len(s.functions))], arguments: []string{}}
	for _, a := range s.signatures[m.function] {
		if a.optional && s.random.IntN(2) == 0 {
			break
		}
		m.arguments = append(m.arguments, s.value(a.types[s.random.IntN(len(a.types))]))
	}
	if len(s.signatures[m.function]) == 0 {
		for range s.random.IntN(4) {
			m.arguments = append(m.arguments, s.value(""))
		}
	}
	m.text = s.write(m)
	return m
}

// write is the call's text. An aggregate sometimes gets a combinator, parameters or a window.
func (s *soak) write(m made) string {
	name, behind := m.function, ""
	if s.aggregates[m.function] {
		switch s.random.IntN(8) {
		case 0:
			name += []string{"If", "Array", "OrNull", "OrDefault", "Distinct", "ForEach", "ArgMin", "Resample", "Map"}[s.random.IntN(9)]
		case 1:
			name += "(" + s.value("number") + ")"
		case 2:
			behind = " OVER (ORDER BY a)"
		}
	}
	return name + "(" + strings.Join(m.arguments, ", ") + ")" + behind
}

// Whatever is asked, the server goes on; a statement that ends the SQL process is named, and its function belongs into
// denied.txt.
func TestRandomStatements(t *testing.T) {
	span := 5 * time.Second
	if text := os.Getenv(soakVariable); text != "" {
		var err error
		if span, err = time.ParseDuration(text); err != nil {
			t.Fatalf("%s: %v", soakVariable, err)
		}
	}
	i := install(t, func(o *Options) {
		o.Limits = engine.DefaultLimits()
		o.Limits.Time, o.Limits.Memory = 2*time.Second, 256<<20
	})
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	s := newSoak(t, rand.New(rand.NewPCG(seed, 0)), i.owner)
	outcomes, called := map[string]int{}, map[string]bool{}
	asked, named := 0, 0
	var last made
	// name reports the deaths since it was called last. A process may outlive the answer to the statement that ends it, so the one
	// before is reported too.
	name := func(m made, outcome string) {
		ends := int(i.metric(t, "marketlog_sql_process_crashes_total"))
		if ends > named {
			t.Logf("the SQL process ended %d times by %q (%s) or by %q", ends-named, clip(m.text), outcome, clip(last.text))
		}
		named = ends
	}
	for began := time.Now(); asked < soakLeast || time.Since(began) < span; asked++ {
		m := s.statement()
		status, body := i.ask(t, m.text)
		outcome := outcomeOf(status, body)
		outcomes[outcome]++
		switch outcome {
		case answered:
			if m.arguments != nil {
				called[m.function] = true
				s.learn(m.function, m.arguments)
			}
		case ended:
			t.Logf("it is gone: %s", body)
			i.recover(t)
		}
		name(m, outcome)
		last = m
	}
	i.wait(t, "SELECT count() FROM v_t", "1000\n")
	name(last, "the last one")
	if n, err := i.owner.Ask("SELECT count() FROM m.t", "TabSeparated"); err != nil || n != "1000\n" {
		t.Errorf("the owner has %s (%v), want 1000 rows", n, err)
	}
	share := 100 * outcomes[answered] / max(1, asked)
	t.Logf("asked %d in %v or more: %d %% answered, %s; of %d functions %d were answered, %d are known to be; the SQL process ended %d times",
		asked, span, share, list(outcomes), len(s.functions), len(called), len(s.good), named)
	streamtest.ReportSeed(t, seed)
	streamtest.Report(t, "seconds", int(span.Seconds()))
	streamtest.Report(t, "statements", asked)
	streamtest.Report(t, "answered", outcomes[answered])
	streamtest.Report(t, "ends_of_the_process", named)
	if share < soakWanted && !*learn {
		t.Errorf("%d %% of the statements were answered, want %d or more: what is refused tries nothing", share, soakWanted)
	}
	if *learn {
		s.save(t)
	}
}

// What becomes of a statement.
const (
	answered = "answered"
	refused  = "refused for types or arguments"
	failed   = "failed while they ran"
	ended    = "ended the process"
)

// ofTypes are the engine's codes of statements that it refuses before it runs them: for the number and the types of arguments,
// for parameters, names and syntax.
var ofTypes = []string{"34", "35", "36", "42", "43", "44", "46", "47", "48", "53", "62", "63", "70", "133", "134", "164", "184", "386"}

func outcomeOf(status int, body string) string {
	code, _, _ := strings.Cut(strings.TrimPrefix(body, "Code: "), ".")
	switch {
	case status == 200 && !strings.HasSuffix(body, brokenOff):
		return answered
	case status == 503 && strings.Contains(body, "ended"), status == 408 && strings.Contains(body, "not planned"), status == 200 && !strings.Contains(body, "__exception__"):
		return ended
	case slices.Contains(ofTypes, code):
		return refused
	}
	return failed
}

// clip keeps a log readable.
func clip(statement string) string { return statement[:min(len(statement), 1000)] }

// list is a count of each outcome.
func list(outcomes map[string]int) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(outcomes)) {
		parts = append(parts, fmt.Sprintf("%d %s", outcomes[name], name))
	}
	return strings.Join(parts, ", ")
}

// recover waits until the SQL process answers again: after several ends in a row it is started later.
func (i *installation) recover(t *testing.T) { i.wait(t, "SELECT 1", "1\n") }

// save writes what was learned, the shortest lists of each function.
func (s *soak) save(t *testing.T) {
	t.Helper()
	var b strings.Builder
	for _, function := range slices.Sorted(maps.Keys(s.good)) {
		lists := s.good[function]
		slices.SortStableFunc(lists, func(x, y []string) int {
			return cmp.Or(cmp.Compare(len(x), len(y)), cmp.Compare(len(strings.Join(x, "")), len(strings.Join(y, ""))))
		})
		for _, arguments := range lists[:min(len(lists), soakListsKept)] {
			fmt.Fprintln(&b, strings.Join(append([]string{function}, arguments...), "\t"))
		}
	}
	if err := os.WriteFile(callsFile, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}
