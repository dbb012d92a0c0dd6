package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// How often the kill tests kill; `make chaos` kills a thousand times.
const (
	killsVariable = "MARKETLOG_KILLS"

	quickKills = "2"
	slowKills  = "10"
)

// wholeVariable is set where the slow stage follows the quick one, which then leaves to it what it would run as well, with more kills
// or with the race detector. The program takes variables that begin with MARKETLOG_ for settings.
const wholeVariable = "WHOLE_GATE"

// quick runs the tests of `make test` as the program is built for users: without cgo, so that the tests, the linter and the
// binary share what was compiled, and without the race detector, which would compile all a second time and run it at half the
// speed. Results are never taken from the cache: it does not see the servers that tests start.
func quick(out io.Writer) []result {
	list, err := packagesInOrder()
	if err != nil {
		return []result{check("embedded", "go list", err)}
	}
	whole := os.Getenv(wholeVariable) != "" && haveCompiler() == nil
	if whole {
		fmt.Fprintln(out, "the slow stage follows: the tests that it runs with the race detector, and the kills, are left to it")
	}
	run, spared := quickRuns(list, whole)
	beside := make(chan []result, 1)
	go func() { beside <- spared.results() }()
	results := append(run.results(), <-beside...)
	tools := testRun{name: "tools", tier: "tools", folder: "tools", kills: quickKills, arguments: []string{"./..."}}
	client := testRun{name: "client", tier: "client", folder: clientFolder, kills: quickKills, arguments: []string{"./..."}}
	return slices.Concat(results, tools.results(), client.results())
}

// quickRuns are those of the quick stage: of its packages, and, in a whole gate, of the tests that neither the first nor the detector runs.
func quickRuns(all []string, whole bool) (run, spared testRun) {
	run = testRun{name: "quick", tier: "embedded", folder: ".", kills: quickKills, arguments: append([]string{"-skip", only(slow, killTest)}, all...)}
	if !whole {
		return run, testRun{}
	}
	raced, _ := lanes(all)
	left := slices.DeleteFunc(slices.Clone(all), func(name string) bool { return slices.Contains(raced, name) })
	run.arguments = append([]string{"-skip", only(slow, "")}, left...)
	return run, testRun{name: "unraced", tier: "embedded", folder: ".", kills: quickKills, yields: true,
		arguments: append([]string{"-p", "1", "-run", only(unraced, "")}, packages(unraced)...)}
}

// slowTests runs what `make gate` runs after it: the slow tests on one processor, and on the other the quick tests with the race
// detector, without which the quick stage may have run them, and then slow tests too, a package at a time. What is compiled for the detector, and
// then the patient ones of the slow tests, take what these leave of both: they wait for a third of their time.
func slowTests(out io.Writer) []result {
	all, err := packagesInOrder()
	if err != nil {
		return []result{check("embedded", "go list", err)}
	}
	raced, hurried := lanes(all)
	queue := make(chan string, len(hurried))
	for _, name := range hurried {
		queue <- name
	}
	close(queue)
	detector, results := raceDetector()
	one := func(name string, arguments ...string) testRun {
		return testRun{name: name, tier: "embedded", folder: ".", kills: slowKills, arguments: append([]string{"-p", "1"}, arguments...)}
	}
	again := one("race", append([]string{"-skip", only(slow, "") + "|" + only(unraced, "")}, raced...)...)
	again.race = detector
	take := func() (results []result) {
		for name := range queue {
			results = append(results, one("slow-"+strings.ReplaceAll(strings.TrimPrefix(name, "./"), "/", "-"), "-run", only(slow, ""), name).results()...)
		}
		return results
	}
	yielded := one("patient", append([]string{"-run", only(slow, "")}, paths(patient)...)...)
	yielded.yields = true

	compiled := make(chan struct{})
	behind, beside := make(chan []result, 1), make(chan []result, 1)
	go func() {
		if detector {
			compile(out, raced)
		}
		close(compiled)
		behind <- yielded.results()
	}()
	go func() { beside <- take() }()
	<-compiled
	watched := again.results()
	return slices.Concat(results, repeated(out, watched, again), take(), <-beside, <-behind)
}

// detectorCrash is what the Go runtime says where a fault was met by C code of the program itself, by its low address, on a stack that is no
// goroutine's: with the race detector there is no other such code but the detector's. The engine's lies in a library, far above.
var detectorCrash = regexp.MustCompile(`(?m)^SIGSEGV: segmentation violation\nPC=0x[0-9a-f]{1,8} m=`)

// repeated runs the packages once more that the race detector ended by a crash of its own. Seen once, with Go 1.26.8:
// the detector takes the stack of a goroutine that a timer starts, and the depth that it has counted is below zero.
func repeated(out io.Writer, results []result, run testRun) []result {
	crashed := map[string]bool{}
	for _, r := range results {
		if name, _, _ := strings.Cut(r.name, " "); r.outcome == failed && detectorCrash.MatchString(r.output) {
			crashed[name] = true
		}
	}
	if len(crashed) == 0 {
		return results
	}
	names := slices.Sorted(maps.Keys(crashed))
	fmt.Fprintf(out, "the race detector crashed, its packages run again: %s\n", strings.Join(names, ", "))
	run.name += "-again"
	run.arguments = append(slices.DeleteFunc(slices.Clone(run.arguments), func(word string) bool { return strings.HasPrefix(word, "./") }), paths(names)...)
	kept := slices.DeleteFunc(slices.Clone(results), func(r result) bool {
		name, _, _ := strings.Cut(r.name, " ")
		return crashed[name]
	})
	return append(kept, run.results()...)
}

// lanes are the packages whose quick tests run with the race detector, and those whose slow tests are not patient, each in order.
func lanes(all []string) (raced, hurried []string) {
	unraced, last, have := paths(slices.Concat(otherProcess, sequential, elsewhere)), paths(patient), packages(slow)
	for _, name := range all {
		if !slices.Contains(unraced, name) {
			raced = append(raced, name)
		}
		if slices.Contains(have, name) && !slices.Contains(last, name) {
			hurried = append(hurried, name)
		}
	}
	return raced, hurried
}

// races runs with the race detector what the other stages run without it: the slow tests of the packages that start goroutines, and
// the quick ones of those that the slow stage spares.
func races(io.Writer) []result {
	detector, results := raceDetector()
	if !detector {
		return results
	}
	without := paths(slices.Concat(otherProcess, sequential))
	list := slices.DeleteFunc(packages(slow), func(name string) bool { return slices.Contains(without, name) })
	run := testRun{name: "races", tier: "embedded", folder: ".", kills: slowKills, race: true,
		arguments: append([]string{"-p", "1", "-run", only(slow, "")}, list...)}
	spared := testRun{name: "races-elsewhere", tier: "embedded", folder: ".", kills: slowKills, race: true,
		arguments: append([]string{"-p", "1", "-skip", only(slow, "")}, paths(elsewhere)...)}
	return slices.Concat(results, run.results(), spared.results())
}

// compile fills the cache with packages and their tests for the race detector. It gives way to the tests that run meanwhile, and links
// nothing, which would be done once more where a test is run. What does not compile fails there too, and is printed there.
func compile(out io.Writer, packages []string) {
	begin := time.Now()
	command := yielding("go", append([]string{"list", "-race", "-test", "-export"}, packages...)...)
	command.Env = lavish(append(asShipped(), "CGO_ENABLED=1"))
	_ = command.Run()
	fmt.Fprintf(out, "compiled for the race detector in %.1f s\n", time.Since(begin).Seconds())
}

// packagesInOrder are the packages of the repository, those with the longest tests first: the one that begins last is what
// the other processor waits for.
func packagesInOrder() ([]string, error) {
	out, err := exec.Command("go", "list", "./...").Output()
	if err != nil {
		return nil, fmt.Errorf("listing the packages: %w", err)
	}
	list := paths(longest)
	for name := range strings.FieldsSeq(string(out)) {
		name = "./" + strings.TrimPrefix(strings.TrimPrefix(name, strings.TrimSuffix(modulePrefix, "/")), "/")
		if !slices.Contains(list, name) {
			list = append(list, name)
		}
	}
	return list, nil
}

// raceDetector reports whether this machine has what it needs.
func raceDetector() (is bool, results []result) {
	if err := haveCompiler(); err != nil {
		return false, []result{{tier: "race", name: "race detector", outcome: skipped, reason: err.Error()}}
	}
	return true, []result{{tier: "race", name: "race detector"}}
}

// haveCompiler returns why the race detector, which needs cgo, cannot be used.
func haveCompiler() error {
	cc, err := exec.Command("go", "env", "CC").Output()
	if err != nil {
		return fmt.Errorf("asking go for the C compiler: %w", err)
	}
	words := strings.Fields(string(cc))
	if len(words) == 0 {
		return fmt.Errorf("no C compiler")
	}
	if _, err := exec.LookPath(words[0]); err != nil {
		return fmt.Errorf("no C compiler %s: the tests run without it", words[0])
	}
	return nil
}

// testRun is one call of `go test`. The whole stream of events is kept in bin under its name, for a look at what a test
// printed. Tests that name no tier get the given one. Kill tests kill as often as given here, unless the caller of the gate has set it.
type testRun struct {
	name, tier, folder, kills string
	race                      bool
	yields                    bool // to all other programs
	arguments                 []string
}

func (r testRun) results() []result {
	if len(r.arguments) == 0 {
		return nil
	}
	fail := func(err error) []result { return []result{check(r.tier, "go test", err)} }
	if err := os.MkdirAll("bin", 0o755); err != nil {
		return fail(err)
	}
	log, err := os.Create(filepath.Join("bin", r.name+"-tests.json"))
	if err != nil {
		return fail(err)
	}
	defer log.Close()

	// The linter has vetted all packages.
	arguments := []string{"test", "-json", "-count=1", "-vet=off", "-timeout=40m"}
	environment := asShipped()
	if r.race {
		arguments = append(arguments, "-race")
		environment = append(environment, "CGO_ENABLED=1")
	}
	arguments = append(arguments, r.arguments...)
	command := exec.Command("go", arguments...)
	if r.yields {
		command = yielding("go", arguments...)
	}
	command.Dir = r.folder
	command.Stderr = os.Stdout
	command.Env = environment
	if os.Getenv(killsVariable) == "" {
		command.Env = append(command.Env, killsVariable+"="+r.kills)
	}
	events, err := command.StdoutPipe()
	if err != nil {
		return fail(err)
	}
	if err := command.Start(); err != nil {
		return fail(err)
	}
	results, err := readEvents(io.TeeReader(events, log), os.Stdout, r.tier)
	if err != nil {
		results = append(results, fail(err)...)
	}
	err = command.Wait()
	if err != nil && !slices.ContainsFunc(results, func(r result) bool { return r.outcome == failed }) {
		results = append(results, fail(err)...)
	}
	return results
}

// asShipped is the environment in which the go command compiles as `make build` does: what one of them compiled, the others
// take from the cache, also in another checkout.
func asShipped() []string {
	return append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS="+strings.TrimSpace(os.Getenv("GOFLAGS")+" -trimpath"))
}

// event is one line of `go test -json` (go doc test2json; attr since Go 1.25).
type event struct {
	Action      string
	Package     string
	ImportPath  string // of a build's output
	Test        string
	Elapsed     float64 // seconds
	Output      string
	Key, Value  string // of an attribute
	FailedBuild string
}

// test is what is known of one test, or of a package under the name "".
type test struct {
	name     string
	tier     string // by its attribute; "" if it names none
	action   string // pass, fail, skip; "" while it runs
	seconds  float64
	output   strings.Builder
	children bool
	failures bool // in a subtest
}

// readEvents reads `go test -json` and prints a line for each package, with the output of what
// failed. It returns the leaves: a test with subtests counts only where it failed by itself.
func readEvents(in io.Reader, out io.Writer, tier string) ([]result, error) {
	builds := map[string]*strings.Builder{}
	packages := map[string]map[string]*test{}
	var results []result

	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			var e event
			if json.Unmarshal(line, &e) != nil {
				fmt.Fprintf(out, "%s", line) // not an event: the go command says something itself
			} else if e.Action == "build-output" {
				if builds[e.ImportPath] == nil {
					builds[e.ImportPath] = new(strings.Builder)
				}
				builds[e.ImportPath].WriteString(e.Output)
			} else if e.Package != "" {
				if packages[e.Package] == nil {
					packages[e.Package] = map[string]*test{}
				}
				known := packages[e.Package]
				ended := record(known, e)
				if ended {
					if build := builds[e.FailedBuild]; build != nil {
						known[""].output.WriteString(build.String())
					}
					results = append(results, closePackage(out, e, known, tier)...)
					delete(packages, e.Package)
				}
			}
		}
		if err == io.EOF {
			return results, nil
		}
		if err != nil {
			return results, fmt.Errorf("reading the events of go test: %w", err)
		}
	}
}

// record notes one event and reports whether it ends the package.
func record(known map[string]*test, e event) bool {
	t := known[e.Test]
	if t == nil {
		t = &test{name: e.Test}
		known[e.Test] = t
	}
	switch e.Action {
	case "output":
		t.output.WriteString(e.Output)
	case "attr":
		if e.Key == "tier" {
			t.tier = e.Value
		}
	case "pass", "fail", "skip":
		t.action, t.seconds = e.Action, e.Elapsed
		return e.Test == ""
	}
	return false
}

// closePackage counts the tests of a package that has ended and prints its line, all at once: another run may print too.
func closePackage(to io.Writer, e event, known map[string]*test, tier string) []result {
	out := new(strings.Builder)
	defer func() { fmt.Fprint(to, out.String()) }()
	var names []string
	for name := range known {
		if name != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		for parent := range ancestors(known, name) {
			parent.children = true
			parent.failures = parent.failures || known[name].action == "fail"
		}
	}

	var results []result
	anyFailed := false
	for _, name := range names {
		t := known[name]
		res := result{tier: tierOf(known, name, tier), name: strings.TrimPrefix(e.Package, modulePrefix) + " " + name}
		switch {
		case t.action == "skip":
			res.outcome, res.reason = skipped, skipReason(t.output.String())
			res.tier = tierOfSkip(res.reason, res.tier)
		case t.action == "fail" && t.failures:
			anyFailed = true
			fmt.Fprint(out, t.output.String())
			continue // its subtests are counted
		case t.action != "pass":
			anyFailed = true
			res.outcome, res.output = failed, gist(t.output.String())
			if t.action == "" {
				res.reason = "it did not finish"
			}
			fmt.Fprint(out, t.output.String())
		case t.children:
			continue
		}
		results = append(results, res)
	}

	whole := known[""]
	if whole.action == "fail" {
		fmt.Fprint(out, whole.output.String())
		if !anyFailed {
			results = append(results, result{tier: tier, name: strings.TrimPrefix(e.Package, modulePrefix), outcome: failed, reason: "the package failed outside its tests", output: gist(whole.output.String())})
		}
	}
	if whole.action != "skip" && len(results) > 0 { // a package without tests, or without one that was asked for
		results[0].packageSeconds = e.Elapsed
		fmt.Fprintf(out, "%-4s %s  %d tests  %.1f s\n", whole.action, e.Package, len(results), e.Elapsed)
		for _, name := range names {
			if t := known[name]; t.seconds >= longTest && !strings.Contains(name, "/") {
				fmt.Fprintf(out, "       %6.1f s  %s\n", t.seconds, name)
			}
		}
	}
	return results
}

// longTest is from how many seconds on a test is named below its package.
const longTest = 15

const modulePrefix = "github.com/marketlog/marketlog/"

// ancestors yields the tests that name is a subtest of, the nearest first. A name may hold slashes
// of its own, so only tests that exist count.
func ancestors(known map[string]*test, name string) func(func(*test) bool) {
	return func(yield func(*test) bool) {
		for end := strings.LastIndexByte(name, '/'); end > 0; end = strings.LastIndexByte(name[:end], '/') {
			if t := known[name[:end]]; t != nil && !yield(t) {
				return
			}
		}
	}
}

// tierOf returns the tier that the test or the nearest test around it names.
func tierOf(known map[string]*test, name, otherwise string) string {
	if tier := known[name].tier; tier != "" {
		return tier
	}
	for t := range ancestors(known, name) {
		if t.tier != "" {
			return t.tier
		}
	}
	return otherwise
}

// tierOfSkip returns the tier for want of which a test says it was skipped.
func tierOfSkip(reason, otherwise string) string {
	if named, ok := strings.CutPrefix(reason, "tier "); ok {
		if tier, _, ok := strings.Cut(named, ": "); ok {
			return tier
		}
	}
	return otherwise
}

// gistLines is how much of a failure the report repeats: a log is often kept by its end alone.
const gistLines = 12

// messageBytes is how much of one message it repeats.
const messageBytes = 2000

// crash begins what the Go runtime says of a test that takes the process with it.
var crash = regexp.MustCompile(`^\s*(panic: |fatal error: |unexpected fault |SIG[A-Z]+: |WARNING: DATA RACE|==\d+==)`)

// gist finds the lines of a failed test that explain most: from a crash on, or else the first and the last ones; a test that logs more than
// that, as one that shows the log of what it started, has its own messages last.
func gist(output string) string {
	var lines []string
	for line := range strings.Lines(output) {
		line = strings.TrimRight(line, " \n")
		if line != "" && !strings.HasPrefix(line, "=== ") {
			lines = append(lines, line)
		}
	}
	if at := slices.IndexFunc(lines, crash.MatchString); at >= 0 {
		return strings.Join(lines[at:min(at+gistLines, len(lines))], "\n")
	}
	if len(lines) <= gistLines {
		return strings.Join(lines, "\n")
	}
	var messages []string
	for _, line := range lines {
		if logged.MatchString(line) && len(messages) < gistLines/2 {
			messages = append(messages, line[:min(len(line), messageBytes)])
		}
	}
	if len(messages) == 0 {
		messages = lines[:gistLines/2]
	}
	return strings.Join(slices.Concat(lines[len(lines)-gistLines/2:], []string{"[…]"}, messages), "\n")
}

var logged = regexp.MustCompile(`^\s*[\w.-]+\.go:\d+: (.*)$`)

// skipReason finds the words of t.Skip: the last line that a test logged.
func skipReason(output string) string {
	reason := "no reason given"
	for line := range strings.Lines(output) {
		if match := logged.FindStringSubmatch(strings.TrimRight(line, "\n")); match != nil {
			reason = match[1]
		}
	}
	return reason
}
