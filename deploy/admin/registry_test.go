package admin_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/marketlog/marketlog/deploy/admin"
)

func TestRegistryListsTheInstancesThatRun(t *testing.T) {
	home := t.TempDir()
	r := admin.UserRegistry([]string{"HOME=" + home, "XDG_RUNTIME_DIR="})
	hold := func(name string) *admin.DataDir {
		t.Helper()
		d, err := admin.HoldDataDir(filepath.Join(home, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Announce(admin.RunInfo{PID: os.Getpid()}); err != nil {
			t.Fatal(err)
		}
		if err := r.Add(d.Path()); err != nil {
			t.Fatal(err)
		}
		return d
	}
	want := func(when string, dirs ...string) {
		t.Helper()
		if got := r.Running(); !slices.Equal(got, dirs) {
			t.Errorf("%s: got %q, want %q", when, got, dirs)
		}
	}

	want("before any")
	b, a := hold("b"), hold("a")
	want("two run", a.Path(), b.Path())
	// As after a SIGKILL: the lock is gone, and the file is not.
	if err := a.Release(); err != nil {
		t.Fatal(err)
	}
	want("one was killed", b.Path())
	if err := os.WriteFile(filepath.Join(string(r), "damaged.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	want("a file is damaged", b.Path())
	if err := r.Remove(b.Path()); err != nil {
		t.Fatal(err)
	}
	want("the other has left")
	if err := r.Remove(b.Path()); err != nil {
		t.Errorf("removing twice: %v", err)
	}
	if err := b.Release(); err != nil {
		t.Fatal(err)
	}
}

func TestRegistryLiesInAFolderOfTheUserOrNowhere(t *testing.T) {
	there, missing := t.TempDir(), filepath.Join(t.TempDir(), "missing")
	for _, c := range []struct {
		environ []string
		want    string
	}{
		{[]string{"XDG_RUNTIME_DIR=" + there, "HOME=/elsewhere"}, filepath.Join(there, "marketlog")},
		{[]string{"XDG_RUNTIME_DIR=" + missing, "HOME=" + there}, filepath.Join(there, ".cache", "marketlog", "run")},
		{[]string{"XDG_RUNTIME_DIR=.", "HOME=" + missing}, ""},
		{nil, ""},
	} {
		r := admin.UserRegistry(c.environ)
		if string(r) != c.want {
			t.Errorf("%v: got %q, want %q", c.environ, r, c.want)
		}
		if r == "" && (r.Add(there) != nil || r.Remove(there) != nil || r.Running() != nil) {
			t.Errorf("%v: a registry that is none does not say so quietly", c.environ)
		}
	}
}
