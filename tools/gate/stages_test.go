package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// testsOf lists the tests of the checkout, by package.
func testsOf(t *testing.T, root string) map[string][]string {
	t.Helper()
	tests := map[string][]string{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && slices.Contains([]string{"node_modules", ".git", "bin", "data"}, entry.Name()):
			return filepath.SkipDir
		case !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		folder, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Test") && f.Name.Name != "TestMain" {
				tests[filepath.ToSlash(folder)] = append(tests[filepath.ToSlash(folder)], f.Name.Name)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return tests
}

// A test whose name changes would leave its stage in silence, and one of the same name elsewhere would be skipped with it.
func TestEveryTestHasAStageAndEveryStageATarget(t *testing.T) {
	tests := testsOf(t, filepath.Join("..", ".."))
	holders := map[string][]string{}
	for folder, names := range tests {
		for _, name := range names {
			holders[name] = append(holders[name], folder)
		}
	}
	for _, table := range []map[string][]string{slow, faults} {
		for folder, names := range table {
			for _, name := range names {
				if got := holders[name]; !slices.Equal(got, []string{folder}) {
					t.Errorf("%s of %s is in %v, want it there and nowhere else", name, folder, got)
				}
			}
		}
	}
	makefile, err := os.ReadFile(filepath.Join("..", "..", "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	targets := append([]string{"test", "slow", "gate", "nightly"}, slices.Collect(maps.Keys(nightly))...)
	for _, target := range targets {
		if !strings.Contains(string(makefile), fmt.Sprintf("\n%s:", target)) {
			t.Errorf("the Makefile has no target %s", target)
		}
	}
	for target, names := range nightly {
		for _, name := range names {
			if len(holders[name]) != 1 {
				t.Errorf("make %s runs %s, which is in %v", target, name, holders[name])
			}
		}
	}
	for name := range forgiven {
		folder, test, _ := strings.Cut(name, " ")
		if folder != "vulnerabilities" && !slices.Contains(tests[folder], test) {
			t.Errorf("the skip of %s is forgiven, which is not there", name)
		}
	}
}
