package e2e

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/marketlog/marketlog/deploy/cli"
	"github.com/marketlog/marketlog/deploy/cli/command"
	"github.com/marketlog/marketlog/deploy/deploytest"
	"github.com/marketlog/marketlog/deploy/embedded/engine"
	"github.com/marketlog/marketlog/deploy/embedded/sqlport"
)

// TestMain lets the scripts know the commands `marketlog` and `drainer`.
func TestMain(m *testing.M) {
	sqlport.RunIfChild()
	testscript.Main(endingTheDemo{m}, map[string]func(){
		"marketlog": func() {
			app := command.Runtime{Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Env: os.Environ()}
			os.Exit(cli.Execute(cli.Interruptible(), &app, os.Args[1:]))
		},
		"drainer": drainer,
	})
}

// endingTheDemo ends the shared demo after all tests, in whatever order they ran. The demo ends when it is stopped, with
// everything written; where it does not, the tests have failed.
type endingTheDemo struct{ *testing.M }

func (m endingTheDemo) Run() int {
	flag.Parse()
	// Where all tests are run it begins at once: its first minute passes while recordings are played, which come first by the name
	// of their file.
	if _, err := engine.Find(""); err == nil && flag.Lookup("test.run").Value.String() == "" && flag.Lookup("test.list").Value.String() == "" {
		go func() { _, _ = beginDemo() }() // who asks for it gets the error
	}
	code := m.M.Run()
	if err := endDemo(errors.New("all tests have ended")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return max(code, 1)
	}
	return code
}

// TestCommands runs the scripts: what a person types, and what the program answers. The program is the one that users
// have: with the race detector a whole instance would not drain in its time on a machine that is busy with other tests.
func TestCommands(t *testing.T) {
	library, missing := engine.Find("")
	bin := t.TempDir()
	if err := deploytest.BuildBinary(filepath.Join(bin, "marketlog")); err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", "script"),
		Setup: func(e *testscript.Env) error {
			// Kept for the sub-processes, whose home is empty.
			e.Setenv("LIBCHDB", library)
			e.Setenv("LIBCHDB_FOLDER", filepath.Base(filepath.Dir(library)))
			registry := httptest.NewServer(http.HandlerFunc(otherPackages))
			e.Defer(registry.Close)
			e.Setenv("REGISTRY", registry.URL)
			e.Setenv("PATH", bin+string(filepath.ListSeparator)+e.Getenv("PATH"))
			for _, name := range []string{"API", "SQL", "KAFKA", "METRICS"} {
				e.Setenv(name, deploytest.FreeAddr(t))
			}
			return nil
		},
		Condition: func(name string) (bool, error) {
			switch name {
			case "engine":
				return missing == nil, nil
			case "pinned":
				_, err := engine.Pinned()
				return err == nil, nil
			}
			return false, fmt.Errorf("unknown condition %s", name)
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"await": await,
		},
	})
}

// otherPackages is a registry of npm packages that has another archive below /other for each that is asked for, and none elsewhere.
func otherPackages(w http.ResponseWriter, r *http.Request) {
	if !strings.HasPrefix(r.URL.Path, "/other/") {
		http.NotFound(w, r)
		return
	}
	_, _ = io.WriteString(w, "not the archive of "+r.URL.Path)
}

// await waits for a file to be there, or with ! to be gone: `await data/run.json`.
func await(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 1 {
		ts.Fatalf("usage: await FILE")
	}
	path := ts.MkAbs(args[0])
	for deadline := time.Now().Add(3 * time.Minute); ; {
		_, err := os.Stat(path)
		if (err == nil) != neg {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("waiting for %s: %v", strings.Join(args, " "), err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}
