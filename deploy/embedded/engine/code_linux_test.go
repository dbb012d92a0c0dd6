package engine

import (
	"bufio"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// residentCode is how many kB of what is mapped of a file, and must not be written to, are in the memory of this process.
func residentCode(t *testing.T, path string) (kB int) {
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
			code = (fields[1] == "r-xp" || fields[1] == "r--p") && strings.HasSuffix(lines.Text(), " "+path)
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

// What leaves memory of the library and of this program comes back when it runs.
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
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	files := []string{library, program}
	var before, after []int
	for _, file := range files {
		before = append(before, residentCode(t, file))
	}
	if err := releaseCode(files...); err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		after = append(after, residentCode(t, file))
	}
	ask()
	for i, file := range files {
		most := before[i]
		if file == library {
			most /= 2 // what looks into memory here runs through nothing of it, but through much of the program
		}
		if before[i] == 0 || after[i] >= most {
			t.Errorf("%s in memory: %d kB, released %d, want less than %d", file, before[i], after[i], most)
		}
	}
}
