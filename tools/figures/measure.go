package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// once are the benchmarks that repeat what they measure by themselves and report the middle, or percentiles of thousands of
// requests, over a minute or more. All others are run three times, each in a process of its own.
var once = []string{fanOut, wire, start, replay, doors, chart, strings.TrimSuffix(crowd, "/coins=")}

var declared = regexp.MustCompile(`(?m)^func Benchmark(\w+)\(`)

// job is one benchmark that the page needs.
type job struct {
	folder, name string
	runs         int
}

// jobs finds the benchmarks of all figures in the repository.
func jobs(root string) ([]job, error) {
	needed := map[string]bool{}
	for _, s := range sections {
		for _, f := range s.figures {
			for _, from := range []source{f.value, f.limit} {
				if name, _, _ := strings.Cut(from.benchmark, "/"); name != "" {
					needed[name] = true
				}
			}
		}
	}
	var list []job
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && slices.Contains([]string{"node_modules", "bin", "data", ".git"}, entry.Name()):
			return filepath.SkipDir
		case entry.IsDir() || !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		folder, err := filepath.Rel(root, filepath.Dir(path))
		for _, found := range declared.FindAllStringSubmatch(string(text), -1) {
			if name := found[1]; needed[name] {
				delete(needed, name)
				runs := enough
				if slices.Contains(once, name) {
					runs = 1
				}
				list = append(list, job{filepath.ToSlash(folder), name, runs})
			}
		}
		return err
	})
	if err == nil && len(needed) > 0 {
		err = fmt.Errorf("no package has the benchmarks %s", strings.Join(slices.Sorted(maps.Keys(needed)), ", "))
	}
	return list, err
}

// measure runs what is missing in a folder, which has a file for each run: a measurement that was broken off goes on where it
// stopped. It returns what all runs printed.
func measure(list []job, folder string, progress io.Writer) (string, error) {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", err
	}
	var all strings.Builder
	var failed error
	for _, j := range list {
		for run := range j.runs {
			path := filepath.Join(folder, fmt.Sprintf("%s-%d.txt", j.name, run+1))
			text, err := os.ReadFile(path)
			if errors.Is(err, fs.ErrNotExist) {
				began := time.Now()
				text, err = j.run()
				fmt.Fprintf(progress, "%s %s (%d of %d): %.0f s\n", time.Now().UTC().Format(time.TimeOnly), j.name, run+1, j.runs, time.Since(began).Seconds())
				if err != nil {
					failed = errors.Join(failed, fmt.Errorf("%s of %s: %w\n%s", j.name, j.folder, err, text))
					continue
				}
				if err := os.WriteFile(path, text, 0o644); err != nil {
					return "", err
				}
			} else if err != nil {
				return "", err
			}
			all.Write(text)
		}
	}
	return all.String(), failed
}

func (j job) run() ([]byte, error) {
	// As the program is shipped, so that what was compiled for it is used.
	command := exec.Command("go", "test", "-trimpath", "-vet=off", "-run", "^$", "-bench", "^Benchmark"+j.name+"$", "-timeout", "30m", "./"+j.folder)
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	return command.CombinedOutput()
}
