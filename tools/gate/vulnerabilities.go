package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"time"
)

// vulncheck is pinned here and not in tools/go.mod: it would raise what the other tools are built with.
const vulncheck = "golang.org/x/vuln/cmd/govulncheck@v1.9.0"

// foundSome is how govulncheck exits when the program calls something that is known to be vulnerable.
const foundSome = 3

// database is what govulncheck reads first, of some kilobytes.
const database = "https://vuln.go.dev/index/modules.json.gz"

// vulnerabilities asks the Go vulnerability database about what the program calls. A machine that does not reach the
// database skips it and reports it: nothing is known then, good or bad. It is asked before govulncheck is built, which takes a minute of a
// processor.
func vulnerabilities(to io.Writer) []result {
	client := &http.Client{Timeout: 30 * time.Second}
	answer, err := client.Head(database)
	if err != nil {
		return []result{judge([]byte("HTTP GET: "+err.Error()), err)}
	}
	_ = answer.Body.Close()
	command := yielding("go", "run", vulncheck, "./...")
	out, err := command.CombinedOutput()
	fmt.Fprintf(to, "%s", out)
	return []result{judge(out, err)}
}

func judge(out []byte, err error) result {
	r := result{tier: "vulnerabilities", name: "govulncheck"}
	var ended *exec.ExitError
	switch text := string(out); {
	case err == nil:
	case strings.Contains(text, "exit status 3") || errors.As(err, &ended) && ended.ExitCode() == foundSome:
		r.outcome, r.reason = failed, "what is called is known to be vulnerable: update it, or say why it does no harm"
		r.output = text
	case unreachable(text):
		r.outcome, r.reason = skipped, "not applicable: the vulnerability database, or the tool that asks it, cannot be reached: "+lastLine(out)
	default:
		r.outcome, r.reason = failed, fmt.Sprintf("govulncheck: %v: %s", err, lastLine(out))
	}
	return r
}

// unreachable distinguishes a network that is not there from everything else.
func unreachable(text string) bool {
	for _, sign := range []string{"vuln.go.dev", "proxy.golang.org", "dial tcp", "no such host", "connection refused", "i/o timeout", "HTTP GET", "403 Forbidden", "404 Not Found"} {
		if strings.Contains(text, sign) {
			return true
		}
	}
	return false
}

func lastLine(out []byte) string {
	lines := bytes.Split(bytes.TrimSpace(out), []byte("\n"))
	for i := len(lines) - 1; i >= 0; i-- {
		if line := string(lines[i]); line != "" && !strings.HasPrefix(line, "exit status") {
			return line
		}
	}
	return "it says nothing"
}
