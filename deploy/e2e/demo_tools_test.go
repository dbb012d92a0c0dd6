package e2e

import (
	"encoding/json"
	"flag"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/marketlog/marketlog/stream/streamtest"
)

// Tools of others take the document as it is: a linter finds nothing in it, and clients that are generated from it compile.
func TestDemoDocumentSuitsTools(t *testing.T) {
	streamtest.InTier(t, streamtest.TierContract)
	bin := npmTools(t)
	d := runningDemo(t)
	folder := t.TempDir()
	saved := func(path string) (file string) {
		response, err := d.do(http.MethodGet, path, "")
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		file = filepath.Join(folder, filepath.Base(path))
		out, err := os.Create(file)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(out, response.Body); err != nil {
			t.Fatal(err)
		}
		if err := out.Close(); err != nil {
			t.Fatal(err)
		}
		return file
	}
	document, streamed := saved("/openapi.json"), saved("/asyncapi.json")
	typed := filepath.Join(folder, "client.d.ts")
	for _, c := range []struct {
		name, folder string
		command      []string
		clean        string
	}{
		{"redocly", "../../tools/contract", []string{filepath.Join(bin, "redocly"), "lint", document, "--config", "redocly.yaml"}, "you have"},
		{"redocly of the stream", "../../tools/contract", []string{filepath.Join(bin, "redocly"), "lint", streamed, "--config", "redocly.yaml"}, "you have"},
		{"openapi-typescript", "../../tools/contract", []string{filepath.Join(bin, "openapi-typescript"), document, "-o", typed}, ""},
		{"tsc", "../../tools/contract", []string{filepath.Join(bin, "tsc"), "--noEmit", "--strict", typed}, ""},
		{"oapi-codegen", "../../tools", []string{"go", "tool", "oapi-codegen", "-generate", "types,client", "-package", "client", "-o", "contract/client/generated.go", document}, ""},
		{"go vet", "../../tools", []string{"go", "vet", "./contract/client"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			command := exec.CommandContext(t.Context(), c.command[0], c.command[1:]...)
			command.Dir = c.folder
			output, err := command.CombinedOutput()
			if err != nil || c.clean != "" && strings.Contains(strings.ToLower(string(output)), c.clean) {
				t.Errorf("%s: %v\n%.4000s", strings.Join(c.command, " "), err, output)
			}
		})
	}
	if err := os.Remove("../../tools/contract/client/generated.go"); err != nil {
		t.Error(err)
	}
}

var allOperations = flag.Bool("all-operations", false, "have schemathesis walk all operations, not a third of them")

// drawnPaths are the paths of the document that are walked: all, or a third, another one each time.
func drawnPaths(t *testing.T, d *demo) (arguments []string) {
	t.Helper()
	var document struct{ Paths map[string]any }
	if err := json.Unmarshal(d.text(t, "/openapi.json", "application/json"), &document); err != nil {
		t.Fatal(err)
	}
	delete(document.Paths, "/api/v1/stream") // which does not end
	paths := slices.Sorted(maps.Keys(document.Paths))
	if !*allOperations {
		streamtest.Rand(t).Shuffle(len(paths), func(i, j int) { paths[i], paths[j] = paths[j], paths[i] })
		paths = paths[:(len(paths)+2)/3]
	}
	for _, path := range paths {
		arguments = append(arguments, "--include-path", path)
	}
	t.Logf("%d paths", len(paths))
	return arguments
}

// Whatever schemathesis makes of the document, no answer is a fault of the server, of an unknown status or of another
// form than is documented. One worker: with several, CPython before 3.12 fails by chance where two threads parse at a time.
func TestDemoWithstandsSchemathesis(t *testing.T) {
	streamtest.InTier(t, streamtest.TierContract)
	python := schemathesisPython(t)
	d := filledDemo(t) // answers that wait for a first minute are 503
	folder := t.TempDir()
	record := filepath.Join(folder, "requests.har")
	command := exec.CommandContext(t.Context(), python, "-m", "schemathesis.cli", "run", d.base+"/openapi.json",
		"--header", "Authorization: Bearer "+d.key,
		"--checks", "status_code_conformance,content_type_conformance,response_schema_conformance",
		"--workers", "1", "--phases", "examples,coverage,fuzzing", "--max-examples", "4", "--seed", "1", "--generation-database", "none", "--suppress-health-check", "all",
		"--request-timeout", "60", "--warnings", "off", "--no-color", "--report", "har", "--report-har-path", record)
	command.Args = append(command.Args, drawnPaths(t, d)...)
	command.Dir = folder // where it keeps what failed, to try it again: each run is of its seed alone
	output, err := command.CombinedOutput()
	text := strings.ReplaceAll(string(output), d.key, "KEY")
	if err != nil || !strings.Contains(text, " passed") {
		// What failed comes last, since reports of many tests show the end of each.
		before, failed, _ := strings.Cut(text, "= FAILURES =")
		failed, summary, _ := strings.Cut(failed, "= SUMMARY =")
		text = before + summary + failed
		t.Errorf("%v\n%s", err, text[max(0, len(text)-8000):])
	}
	noServerErrors(t, record)
}

// fewOverloads is how many requests of a walk through the document may be refused for the moment, on a machine that is busy with other tests.
const fewOverloads = 10

// noServerErrors checks a record of requests (HAR 1.2) for faults of the server. That it could not answer at the moment, and when to try
// again, is not an error, but for a few requests only.
func noServerErrors(t *testing.T, record string) {
	t.Helper()
	text, err := os.ReadFile(record)
	if err != nil {
		t.Fatal(err)
	}
	var recorded struct {
		Log struct {
			Entries []struct {
				Request struct {
					Method, URL string
					PostData    struct{ Text string }
				}
				Response struct {
					Status  int
					Content struct{ Text string }
					Headers []struct{ Name string }
				}
			}
		}
	}
	if err := json.Unmarshal(text, &recorded); err != nil {
		t.Fatalf("reading the record of requests: %v", err)
	}
	if len(recorded.Log.Entries) < 1000 {
		t.Errorf("the record has %d requests", len(recorded.Log.Entries))
	}
	overloads := 0
	for _, entry := range recorded.Log.Entries {
		request, response := entry.Request, entry.Response
		if response.Status < http.StatusInternalServerError {
			continue
		}
		t.Logf("%s %s %.300s was answered with %d %.500s", request.Method, request.URL, request.PostData.Text, response.Status, response.Content.Text)
		retry := slices.ContainsFunc(response.Headers, func(h struct{ Name string }) bool { return strings.EqualFold(h.Name, "Retry-After") })
		if response.Status != http.StatusServiceUnavailable || !retry {
			t.Errorf("%s %s was answered with %d", request.Method, request.URL, response.Status)
			continue
		}
		overloads++
	}
	if overloads > fewOverloads {
		t.Errorf("%d of %d requests were refused for the moment", overloads, len(recorded.Log.Entries))
	}
}

func npmTools(t *testing.T) (bin string) {
	t.Helper()
	bin, err := filepath.Abs("../../tools/contract/node_modules/.bin")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(bin, "redocly")); err != nil {
		streamtest.Missing(t, streamtest.TierContract, "no redocly; tools/contract/fetch.sh installs it")
	}
	return bin
}

func schemathesisPython(t *testing.T) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	found, err := filepath.Glob(filepath.Join(cache, "marketlog", "contract-*", "bin", "python"))
	if err != nil || len(found) == 0 {
		streamtest.Missing(t, streamtest.TierContract, "no schemathesis; tools/contract/fetch.sh installs it")
	}
	return found[len(found)-1]
}
