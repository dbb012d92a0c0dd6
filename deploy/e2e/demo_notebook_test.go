package e2e

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// notebookRunner executes a notebook, names cells that show nothing and those that the file holds answers of, and prints what it showed.
const notebookRunner = `import sys
import nbclient, nbformat

book = nbformat.read(sys.argv[1], 4)
nbformat.validate(book)
kept = [c.id for c in book.cells if c.cell_type == "code" and (c.outputs or c.execution_count)]
if kept:
    sys.exit(f"the file holds what cells {kept} answered: clear it")
nbclient.NotebookClient(book, timeout=120, kernel_name="python3").execute()
for cell in book.cells:
    if cell.cell_type != "code":
        continue
    shown = [o.get("text") or ", ".join(o["data"]) for o in cell.outputs if o.output_type in ("stream", "execute_result", "display_data")]
    if not shown:
        sys.exit(f"the cell {cell.id} shows nothing:\n{cell.source}")
    print(cell.id, *shown)
`

// runNotebook executes docs/notebook/first-look.ipynb on the demo.
func (d *demo) runNotebook(t *testing.T, environment []string) {
	command := exec.CommandContext(t.Context(), pythonWith(t, "notebook"), "-c", notebookRunner, "first-look.ipynb")
	command.Dir = "../../docs/notebook"
	command.Env = slices.Concat(os.Environ(), environment, []string{"MARKETLOG_URL=" + d.base, "MARKETLOG_API_KEY=" + d.key,
		"IPYTHONDIR=" + t.TempDir(), "MPLCONFIGDIR=" + t.TempDir()})
	out, err := command.CombinedOutput()
	text := strings.ReplaceAll(string(out), d.key, "KEY")
	if err != nil {
		t.Fatalf("%v\n%s", err, text[max(0, len(text)-4000):])
	}
	for _, want := range []string{"SIMULATED", "the median of the accepted inputs is", "20 seconds ago", "image/png", "text/html"} {
		if !strings.Contains(text, want) {
			t.Errorf("nothing of %q in\n%.4000s", want, text)
		}
	}
}

// runPandas runs what docs/sql.md shows of pandas, polars and DuckDB.
func (d *demo) runPandas(t *testing.T) {
	page, err := os.ReadFile("../../docs/sql.md")
	if err != nil {
		t.Fatal(err)
	}
	_, code, _ := strings.Cut(string(page), "\n```python\n")
	code, _, _ = strings.Cut(code, "\n```\n")
	const port = "http://127.0.0.1:8123"
	if !strings.Contains(code, port) {
		t.Fatalf("docs/sql.md asks not %s:\n%s", port, code)
	}
	out, err := exec.CommandContext(t.Context(), pythonWith(t, "notebook"), "-c", strings.ReplaceAll(code, port, d.sql)).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{"BTC", "volume_usd", "hour"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("nothing of %q in\n%s", want, out)
		}
	}
}
