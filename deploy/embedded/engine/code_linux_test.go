package engine

import (
	"bufio"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// residentCode is how many kB of the library's code are in the memory of this process.
func residentCode(t *testing.T) (kB int) {
	t.Helper()
	file, err := os.Open("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	code := false
	for lines := bufio.NewScanner(file); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		switch {
		case len(fields) >= 5 && strings.Contains(fields[0], "-"):
			code = fields[1] == "r-xp" && strings.Contains(lines.Text(), "libchdb")
		case code && fields[0] == "Rss:":
			n, err := strconv.Atoi(fields[1])
			if err != nil {
				t.Fatal(err)
			}
			kB += n
		}
	}
	return kB
}

// What leaves memory of the library's code comes back when it runs.
func TestReleasedCodeRunsAgain(t *testing.T) {
	e := openEngine(t)
	ask := func() {
		if got, err := e.Ask("SELECT sum(number) FROM numbers(1000)", "TSV"); err != nil || strings.TrimSpace(got) != "499500" {
			t.Fatalf("got %q, %v", got, err)
		}
	}
	ask()
	path, err := Find("")
	if err != nil {
		t.Fatal(err)
	}
	library, err := filepath.EvalSymlinks(path)
	if err != nil {
		t.Fatal(err)
	}
	before := residentCode(t)
	if err := releaseCode(library); err != nil {
		t.Fatal(err)
	}
	after := residentCode(t)
	ask()
	if again := residentCode(t); before == 0 || after > before/2 || again <= after {
		t.Errorf("code in memory: %d kB, released %d, running again %d", before, after, again)
	}
}
