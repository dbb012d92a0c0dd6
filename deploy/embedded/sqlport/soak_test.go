//go:build linux || darwin

package sqlport

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/marketlog/marketlog/deploy/embedded/engine"
)

// soakVariable says how long TestRandomStatements asks; a few seconds otherwise.
const soakVariable = "MARKETLOG_SOAK"

// soakArguments are what functions are called with, of many types and at the ends of their ranges.
var soakArguments = []string{
	"a", "s", "toFloat64(a)", "toDateTime(a * 1000)", "toDateTime64(a, 9)", "toDate(a % 60000)", "[a, 1, 2]", "[s, '']", "map(s, a)", "(a, s)", "toDecimal64(a, 4)",
	"toDecimal128('-1.5', 18)", "toNullable(a)", "CAST(NULL AS Nullable(String))", "toLowCardinality(s)", "x -> x", "(x, y) -> x + y", "x -> x > 1", "INTERVAL 1 HOUR",
	"0", "1", "-1", "2", "10", "255", "65536", "9223372036854775807", "-9223372036854775808", "18446744073709551615", "0.5", "1e308", "-1e-308", "nan", "inf", "''", "'a'", "'%'", "'\\0'",
	"repeat('a', 65536)", "'UTC'", "'day'", "'UInt8'", "'$.a'", "'{\"a\":[1,2]}'", "'2026-01-01 00:00:00'", "'(.*)(a)'", "range(10)", "emptyArrayString()", "[[1], []]", "[NULL, 1]",
	"toUUID('00000000-0000-0000-0000-000000000001')", "toIPv4('1.2.3.4')", "toFixedString('ab', 4)", "toInt256(-1)", "toUInt128(7)", "toBFloat16(1)", "true", "NULL",
}

// soak makes statements: calls of allowed functions that nest, most of them with arguments of types that went well before.
type soak struct {
	random     *rand.Rand
	functions  []string
	aggregates map[string]bool
	// good are argument lists that were accepted, by function.
	good map[string][][]string
}

func newSoak(t *testing.T, random *rand.Rand) *soak {
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
	return s
}

// call makes a call of a function, and its arguments.
func (s *soak) call() (text, function string, arguments []string) {
	function = s.functions[s.random.IntN(len(s.functions))]
	if known := s.good[function]; len(known) > 0 && s.random.IntN(10) < 7 {
		arguments = append(arguments, known[s.random.IntN(len(known))]...)
		if len(arguments) > 0 {
			at := s.random.IntN(len(arguments))
			switch s.random.IntN(3) {
			case 0:
				arguments[at] = s.argument()
			case 1:
				inner, _, _ := s.call()
				if len(inner) < 500 {
					arguments[at] = inner
				}
			}
		}
	} else {
		for range s.random.IntN(5) {
			arguments = append(arguments, s.argument())
		}
	}
	name := function
	if s.aggregates[function] && s.random.IntN(3) == 0 {
		name += []string{"If", "Array", "OrNull", "OrDefault", "Distinct", "ForEach", "ArgMin", "Resample", "Map"}[s.random.IntN(9)]
	}
	if s.aggregates[function] && s.random.IntN(3) == 0 {
		name += "(" + s.argument() + ")"
	}
	return name + "(" + strings.Join(arguments, ", ") + ")", function, arguments
}

func (s *soak) argument() string { return soakArguments[s.random.IntN(len(soakArguments))] }

// Whatever is asked, the server goes on; a statement that ends the SQL process is named, and its function belongs into
// denied.txt.
func TestRandomStatements(t *testing.T) {
	span := 3 * time.Second
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
	s := newSoak(t, rand.New(rand.NewPCG(seed, 0)))
	asked, answered, ends := 0, 0, 0
	for began := time.Now(); time.Since(began) < span; asked++ {
		call, function, arguments := s.call()
		statement := "SELECT " + call + " FROM (SELECT number AS a, toString(number) AS s FROM numbers(" + fmt.Sprint(1+s.random.IntN(100)) + "))"
		status, body := i.ask(t, statement)
		switch {
		case status == 200 && !strings.HasSuffix(body, "BROKEN OFF"):
			answered++
			s.good[function] = append(s.good[function], arguments)
		case status == 503 && strings.Contains(body, "ended") || status == 200 && i.crashed():
			ends++
			t.Logf("ended the SQL process: %.1000s\n%s", statement, body)
		}
	}
	if n, err := i.owner.Ask("SELECT count() FROM m.t", "TabSeparated"); err != nil || n != "1000\n" {
		t.Errorf("the owner has %s (%v), want 1000 rows", n, err)
	}
	t.Logf("asked %d in %v: %d answered (%d%%), of %d functions %d were called well; %d ended the SQL process",
		asked, span, answered, 100*answered/max(1, asked), len(s.functions), len(s.good), ends)
	if asked > 50 && answered == 0 {
		t.Error("no statement was answered, so nothing was tried")
	}
	i.wait(t, "SELECT count() FROM v_t", "1000\n")
}

// crashed says whether the SQL process ended by itself since it was asked last.
func (i *installation) crashed() bool {
	i.reader.mu.Lock()
	defer i.reader.mu.Unlock()
	return i.reader.child == nil || !i.reader.child.alive()
}
