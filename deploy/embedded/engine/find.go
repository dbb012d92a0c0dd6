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

// pins is read by tools/engine/fetch.sh too, so that the program looks for exactly what the script fetches.
//
//go:embed pins.txt
var pins string

// ErrNoLibrary means that the engine's shared library is not on this machine. The wrapped text states what to run.
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
	source, version, ok := pinned(runtime.GOOS, runtime.GOARCH)
	if !ok {
		return "", fmt.Errorf("%w: none is pinned for %s/%s; use an outside ClickHouse, or name a libchdb of your own in the configuration",
			ErrNoLibrary, runtime.GOOS, runtime.GOARCH)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("%w: finding the cache folder: %w", ErrNoLibrary, err)
	}
	path := filepath.Join(cache, "marketlog", "libchdb-"+version, "libchdb.so")
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("%w: no %s; run tools/engine/fetch.sh, which lies in a checkout and in the archive of a release, or `npm pack %s@%s` and move package/libchdb.so out of its archive to that path",
			ErrNoLibrary, path, source, version)
	} else if err != nil {
		return "", fmt.Errorf("%w: %w", ErrNoLibrary, err)
	}
	return path, nil
}

// pinned reads from pins.txt, which names platforms as uname does, the npm package with the library and its version.
func pinned(goos, goarch string) (source, version string, ok bool) {
	system := map[string]string{"linux": "Linux", "darwin": "Darwin"}[goos]
	machine := map[string]string{"linux/amd64": "x86_64", "linux/arm64": "aarch64", "darwin/amd64": "x86_64", "darwin/arm64": "arm64"}[goos+"/"+goarch]
	for line := range strings.Lines(pins) {
		field := strings.Fields(line)
		if len(field) == 5 && field[0] == system && field[1] == machine {
			return field[2], field[3], true
		}
	}
	return "", "", false
}
