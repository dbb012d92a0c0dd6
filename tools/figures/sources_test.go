package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A run takes hours, and leaves the page as it was if one figure is missing from it. So each figure is one that a benchmark of
// that name reports in that unit.
func TestEveryFigureIsReportedByABenchmark(t *testing.T) {
	texts := map[string]string{} // all test files of a folder
	folders := map[string][]string{}
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "node_modules" || d.Name() == "bin"):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		folder := filepath.Dir(path)
		texts[folder] += string(text)
		for _, found := range declared.FindAllStringSubmatch(string(text), -1) {
			folders[found[1]] = append(folders[found[1]], folder)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range sections {
		for _, f := range s.figures {
			for _, from := range []source{f.value, f.limit} {
				if from == (source{}) {
					continue
				}
				name, _, _ := strings.Cut(from.benchmark, "/")
				reported := from.unit == "ns/op" && len(folders[name]) > 0
				for _, folder := range folders[name] {
					// A unit may be put together of what is measured and a prefix for its limit.
					_, rest, _ := strings.Cut(from.unit, "-")
					reported = reported || strings.Contains(texts[folder], `"`+from.unit+`"`) || rest != "" && strings.Contains(texts[folder], `"`+rest+`"`)
				}
				if !reported {
					t.Errorf("%s: %s: no Benchmark%s reports %s", s.title, f.what, name, from.unit)
				}
			}
		}
	}
}
