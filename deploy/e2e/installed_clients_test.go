package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/marketlog/marketlog/stream/streamtest"
)

// The clients of TypeScript and Go install into an empty project as the guide says, without a network.
func TestClientsInstallIntoAnEmptyProject(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	run := func(t *testing.T, folder string, environment []string, name string, args ...string) string {
		t.Helper()
		command := exec.CommandContext(ctx, name, args...)
		command.Dir, command.Env = folder, append(os.Environ(), environment...)
		out, err := command.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	write := func(t *testing.T, folder, file, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(folder, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}

	t.Run("TypeScript", func(t *testing.T) {
		binaries, err := filepath.Abs("../../tools/web/node_modules/.bin")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(filepath.Join(binaries, "tsc")); err != nil {
			streamtest.Missing(t, streamtest.TierContract, "no tsc; tools/web/fetch.sh installs it")
		}
		// npm install gives the package its compiler, which is here already.
		source, project := filepath.Join(t.TempDir(), "typescript"), t.TempDir()
		if err := os.CopyFS(source, os.DirFS("../../query/clients/typescript")); err != nil {
			t.Fatal(err)
		}
		environment := []string{"PATH=" + binaries + string(os.PathListSeparator) + os.Getenv("PATH")}
		run(t, source, environment, "npm", "pack", "--offline", "--pack-destination", project)
		write(t, project, "package.json", `{"name": "empty", "type": "module"}`)
		run(t, project, nil, "npm", "install", "--offline", "--no-audit", "--no-fund", "./marketlog-client-0.1.0.tgz")
		write(t, project, "main.ts", "import { Client } from \"@marketlog/client\"\nconst client: Client = new Client({ url: \"http://127.0.0.1:1\", key: \"k\" })\nconsole.log(typeof client.getPrice)\n")
		run(t, project, environment, filepath.Join(binaries, "tsc"), "--strict", "--target", "es2022", "--module", "nodenext", "main.ts")
		if out := run(t, project, nil, "node", "main.js"); out != "function\n" {
			t.Errorf("got %q", out)
		}
	})
	t.Run("Go", func(t *testing.T) {
		client, err := filepath.Abs(goClient)
		if err != nil {
			t.Fatal(err)
		}
		const module = "github.com/marketlog/marketlog/query/clients/go"
		project, environment := t.TempDir(), []string{"GOPROXY=off", "GOFLAGS=-mod=mod", "GOWORK=off", "CGO_ENABLED=0"}
		run(t, project, environment, "go", "mod", "init", "empty")
		run(t, project, environment, "go", "mod", "edit", "-require", module+"@v0.0.0", "-replace", module+"="+client)
		write(t, project, "main.go", "package main\n\nimport (\n\t\"fmt\"\n\n\tmarketlog \""+module+"\"\n)\n\nfunc main() {\n\t_, err := marketlog.New(marketlog.Options{URL: \"http://127.0.0.1:1\", Key: \"k\"})\n\tfmt.Println(err)\n}\n")
		if out := run(t, project, environment, "go", "run", "."); out != "<nil>\n" {
			t.Errorf("got %q", out)
		}
	})
}
