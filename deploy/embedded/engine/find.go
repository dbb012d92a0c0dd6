package engine

import (
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// pins holds what is downloaded for each platform, and where the program looks for it.
//
//go:embed pins.txt
var pins string

// ErrNoLibrary means that the engine's shared library is not on this machine. The wrapped text says what to run.
var ErrNoLibrary = errors.New("the ClickHouse engine library is missing")

// Find returns the path of the engine's shared library: configured, if it is not empty, else the pinned version in
// the user's cache folder, which all checkouts share.
func Find(configured string) (string, error) {
	if configured != "" {
		if _, err := os.Stat(configured); err != nil {
			return "", fmt.Errorf("%w: %w", ErrNoLibrary, err)
		}
		return configured, nil
	}
	pin, err := Pinned()
	if err != nil {
		return "", err
	}
	path, err := pin.Path()
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrNoLibrary, err)
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("%w: no %s; `marketlog engine fetch` downloads it, once (some 180 MB)", ErrNoLibrary, path)
	} else if err != nil {
		return "", fmt.Errorf("%w: %w", ErrNoLibrary, err)
	}
	return path, nil
}

// Pin is the npm package that holds the library, in the one version that this program loads.
type Pin struct {
	Package, Version string
	// Integrity is npm's digest of the package's archive: "sha512-" and base64.
	Integrity string
}

// Pinned returns the package for this platform. Without one the error is ErrNoLibrary with what to use instead.
func Pinned() (Pin, error) {
	pin, ok := pinned(runtime.GOOS, runtime.GOARCH)
	if !ok {
		return Pin{}, fmt.Errorf("%w: none is pinned for %s/%s; use an outside ClickHouse, or name a libchdb of your own in the configuration",
			ErrNoLibrary, runtime.GOOS, runtime.GOARCH)
	}
	return pin, nil
}

// Path is where the library lies in the user's cache folder once it is fetched.
func (p Pin) Path() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("finding the cache folder: %w", err)
	}
	return filepath.Join(cache, "marketlog", "libchdb-"+p.Version, "libchdb.so"), nil
}

// pinned reads from pins.txt, which names platforms as uname does.
func pinned(goos, goarch string) (pin Pin, ok bool) {
	system := map[string]string{"linux": "Linux", "darwin": "Darwin"}[goos]
	machine := map[string]string{"linux/amd64": "x86_64", "linux/arm64": "aarch64", "darwin/amd64": "x86_64", "darwin/arm64": "arm64"}[goos+"/"+goarch]
	for line := range strings.Lines(pins) {
		field := strings.Fields(line)
		if len(field) == 5 && field[0] == system && field[1] == machine {
			return Pin{field[2], field[3], field[4]}, true
		}
	}
	return Pin{}, false
}
