package e2e

import (
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/marketlog/marketlog/docs"
)

// dbtProject lays out the files that docs/sql.md shows, for the SQL port of the demo.
func (d *demo) dbtProject(t *testing.T) (folder string) {
	t.Helper()
	folder = t.TempDir()
	write := func(name, text string) {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	page, err := fs.ReadFile(docs.Files, "sql.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## dbt\n")
	section, _, _ = strings.Cut(section, "\n## ")
	at, err := url.Parse(d.sql)
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile("(?s)\n```(?:yaml|sql)\n(?:#|--) ([a-z_/]+\\.[a-z]+)[^\n]*\n(.*?)```\n").FindAllStringSubmatch(section, -1)
	for _, file := range found {
		write(file[1], strings.ReplaceAll(file[2], "port: 8123", "port: "+at.Port()))
	}
	if len(found) != 3 {
		t.Fatalf("docs/sql.md shows %d files of dbt, want 3", len(found))
	}
	sources, err := fs.ReadFile(docs.Files, "dbt/sources.yml")
	if err != nil {
		t.Fatal(err)
	}
	write("models/sources.yml", string(sources))
	write("dbt_project.yml", "name: of_the_demo\nversion: '1.0'\nprofile: marketlog\n")
	return folder
}

// runDBT has dbt test sources and a model on the SQL port, as docs/sql.md says; each other command of dbt would take as long again.
func (d *demo) runDBT(t *testing.T) {
	python, folder := pythonWith(t, "dbt"), d.dbtProject(t)
	command := exec.CommandContext(t.Context(), python, "-m", "dbt.cli.main", "--no-use-colors", "--no-send-anonymous-usage-stats",
		"test", "--select", "bitcoin_has_a_price", "source:marketlog.v_coins", "source:marketlog.v_markets", "--profiles-dir", folder, "--project-dir", folder)
	command.Dir, command.Env = folder, append(os.Environ(), "HOME="+folder)
	out, err := command.CombinedOutput()
	if err != nil || !regexp.MustCompile(`PASS=\d\d+ WARN=0 ERROR=0 SKIP=0`).Match(out) {
		t.Errorf("dbt test: got %v and\n%.6000s\nwant all passed", err, out[max(0, len(out)-6000):])
	}
}
