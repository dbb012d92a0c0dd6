package pages

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/marketlog/marketlog/stream/streamtest"
)

// What is committed is what the sources and the pinned versions give, byte for byte, and the compiler of its language finds no fault.
func TestScriptsAreBuiltOfTheirSources(t *testing.T) {
	streamtest.InTier(t, streamtest.TierBrowser)
	tools := filepath.Join("..", "..", "tools", "web")
	if _, err := os.Stat(filepath.Join(tools, "node_modules", ".installed")); err != nil {
		streamtest.Missing(t, streamtest.TierBrowser, "nothing to build the pages with; tools/web/fetch.sh installs it")
	}
	for _, command := range [][]string{{"node", "build.mjs", t.TempDir()}, {"node", filepath.Join("node_modules", "typescript", "bin", "tsc"), "-p", "tsconfig.json"}} {
		run := exec.CommandContext(t.Context(), command[0], command[1:]...)
		run.Dir = tools
		if output, err := run.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", command, err, output)
		}
		if command[1] != "build.mjs" {
			continue
		}
		fresh, committed := readFolder(t, command[2]), readFolder(t, "dist")
		for name, content := range fresh {
			if committed[name] != content {
				t.Errorf("dist/%s is not what its sources give: run `make web`", name)
			}
		}
		for name := range committed {
			if _, ok := fresh[name]; !ok {
				t.Errorf("dist/%s is built no more: run `make web`", name)
			}
		}
	}
}

func readFolder(t *testing.T, folder string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, entry := range entries {
		content, err := os.ReadFile(filepath.Join(folder, entry.Name()))
		if err != nil {
			t.Fatal(err)
		}
		files[entry.Name()] = string(content)
	}
	return files
}
