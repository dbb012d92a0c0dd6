package e2e

import (
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// asPerson runs a command as a person does who knows neither the data directory nor a key, in a folder without either.
func (d *demo) asPerson(t *testing.T, environ []string, args ...string) (out string, err error) {
	t.Helper()
	command := exec.CommandContext(t.Context(), d.binary, args...)
	command.Dir = t.TempDir()
	command.Env = append([]string{"HOME=" + command.Dir}, environ...)
	text, err := command.CombinedOutput()
	if files, _ := os.ReadDir(command.Dir); len(files) > 0 {
		t.Errorf("%s left %s behind", strings.Join(args, " "), files[0].Name())
	}
	return string(text), err
}

func TestDemoAnswersPeopleWhoKnowNoDirectoryAndNoKey(t *testing.T) {
	d := filledDemo(t)
	environ := []string{d.registry()}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"price", "BTC", "nosuchcoin"}, `(?s)COIN +ID +PRICE +USD +TIME.*BTC +bitcoin +[\d,]+\.\d\d +USD.*nosuchcoin +– .*no coin has this symbol or id.*SIMULATED`},
		{[]string{"price", "ETH", "--vs", "eur"}, `ETH +ethereum +[\d,]+\.\d\d +EUR `},
		{[]string{"prices", "--top", "3"}, `(?s)# +COIN +NAME +PRICE USD.*\n1 +\S+ +.*\n3 +\S+ `},
		{[]string{"explain", "BTC"}, `(?s)BTC \(bitcoin\) was [\d,.]+ USD at .*the same number.*kraken +\S+ +[\d,.]+ +[+-][\d.]+ bps .*accepted +ticks.raw.v1/\d+@\d+`},
		{[]string{"explain", "market/BTC/marketCap"}, `(?s)market/bitcoin/marketCap = [\d.]+ USD at .*the same number.*market/bitcoin/price = .*in the log: candles.v1/\d+@\d+`},
		{[]string{"rates", "USDC", "--category", "lending"}, `(?s)PROVIDER +CATEGORY +RATE .*\n\S+ +lending +-?[\d.]+ % `},
		{[]string{"chart", "BTC", "--timeframe", "1h"}, `(?s)bitcoin, 1h in candles of 5m: low [\d,.]+, high .*[\d,]+\.\d\d [┤┼].*Z +\d{4}-`},
		{[]string{"watch", "BTC", "--from", "20s", "--to", "5s"}, `(?s)resumed: all prices.* BTC +[\d,]+\.\d\d USD.*the replay has come to its end`},
		{[]string{"status"}, `(?s)VENUE +STATE +MARKETS.*kraken +up +\d+ .*SOURCE +STATE.*STAGE +KIND +BEHIND`},
		{[]string{"topics", "list"}, `ticks.raw.v1`},
		{[]string{"env"}, `(?s)^export MARKETLOG_URL=` + d.base + `\nexport MARKETLOG_API_KEY=ck_live_\w+\n$`},
		{[]string{"mcp", "config", "--key", "new"}, `(?s)"` + d.base + `"\s.*"MARKETLOG_API_KEY": "ck_live_\w+"`},
	} {
		out, err := d.asPerson(t, environ, c.args...)
		if err != nil || !regexp.MustCompile(c.want).MatchString(out) {
			t.Errorf("%s: got %v and\n%s\nwant %s", strings.Join(c.args, " "), err, out, c.want)
		}
	}
	for _, c := range []struct {
		environ, args []string
		want          string
	}{
		{environ, []string{"price"}, "name a coin"},
		{environ, []string{"price", "BTC", "--top", "3"}, "leave out the symbols"},
		{environ, []string{"price", "BTC", "--vs", "nosuch"}, "vs: "},
		{environ, []string{"watch", "nosuchcoin"}, "symbols: no coin has the symbol or id nosuchcoin"},
		{environ, []string{"watch", "BTC", "--speed", "2"}, "--to and --speed belong to a replay: add --from"},
		{environ, []string{"watch", "BTC", "--from", "2200-01-01"}, "from: must not lie in the future"},
		{environ, []string{"chart", "BTC", "--timeframe", "2h"}, "timeframe: "},
		{environ, []string{"explain", "nosuchcoin"}, "no coin has the symbol or id"},
		{environ, []string{"explain", "BTC", "--at", "2999-01-01T00:00:00Z"}, "asOf: "},
		{nil, []string{"price", "BTC"}, "no instance runs in data: start one with `marketlog run`"},
		{[]string{"MARKETLOG_URL=" + d.base}, []string{"price", "BTC"}, "MARKETLOG_API_KEY no key for it"},
		{[]string{"MARKETLOG_URL=" + d.base, "MARKETLOG_API_KEY=ck_live_wrong"}, []string{"price", "BTC"}, "key"},
	} {
		out, err := d.asPerson(t, c.environ, c.args...)
		if err == nil || !strings.Contains(out, c.want) {
			t.Errorf("%q %s: got %v and\n%s\nwant an error with %q", c.environ, strings.Join(c.args, " "), err, out, c.want)
		}
	}
}

// A person's terminal: statements over lines, what is wrong, and views are shown until they leave.
func TestDemoHasAShellForStatements(t *testing.T) {
	d := filledDemo(t)
	program, err := exec.LookPath("script")
	if err != nil {
		t.Skip("not applicable: no script on PATH, which makes a terminal")
	}
	command := exec.CommandContext(t.Context(), program, "-qec", d.binary+" sql --data-dir "+d.dir, os.DevNull)
	typed, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	shown, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	var screen strings.Builder
	for _, step := range []struct{ typed, want string }{
		{"", `marketlog> $`},
		{"SELECT symbol, max(time) > now() - 600 AS fresh\r", `        -> $`},
		{"FROM v_prices WHERE coin_id = 'bitcoin' GROUP BY symbol;\r", `(?s)symbol.*fresh.*BTC.*1.*\d\.\d{3} s\s+marketlog> $`},
		{"SELECT pricee FROM v_prices;\r", `(?s)UNKNOWN_IDENTIFIER.*marketlog> $`},
		{"\\d v_pegs_none\r", `\d\.\d{3} s\s+marketlog> $`},
		{"\\d v_peg\r", `(?s)deviation_bps.*marketlog> $`},
		{"\\d v_universe_at\r", `(?s)coin_id.*Canonical id.*DateTime64\(9, 'UTC'\).*marketlog> $`},
		{"\\q\r", ``},
	} {
		if _, err := typed.Write([]byte(step.typed)); err != nil {
			t.Fatal(err)
		}
		screen.Reset()
		if err := shown.(*os.File).SetReadDeadline(time.Now().Add(2 * time.Minute)); err != nil {
			t.Fatal(err)
		}
		for wanted, piece := regexp.MustCompile(step.want), make([]byte, 4096); !wanted.MatchString(screen.String()); {
			n, err := shown.Read(piece)
			screen.Write(piece[:n])
			if err != nil {
				t.Fatalf("after %q the terminal shows %q and %v, want %s", step.typed, screen.String(), err, step.want)
			}
		}
	}
	_, _ = io.Copy(io.Discard, shown) // a terminal ends with an error
	if err := command.Wait(); err != nil {
		t.Errorf("the shell ends with %v", err)
	}
}

// The key that commands keep is only its owner's to read, and is made again where it was revoked.
func TestDemoRenewsTheKeyOfTheCommandLine(t *testing.T) {
	d := runningDemo(t)
	environ := []string{d.registry()}
	if out, err := d.asPerson(t, environ, "env"); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	path := filepath.Join(d.dir, "command-line.key")
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if stat, err := os.Stat(path); err != nil || stat.Mode().Perm() != 0o600 {
		t.Errorf("got %v, %v; want a file that only its owner reads", stat.Mode(), err)
	}
	out, err := d.asPerson(t, environ, "keys", "list", "-o", "json")
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	revoked := 0
	for line := range strings.Lines(out) {
		var key struct{ ID, Label, Last4 string }
		if err := json.Unmarshal([]byte(line), &key); err != nil {
			t.Fatal(err)
		}
		if key.Label == "command line" && strings.HasSuffix(strings.TrimSpace(string(before)), key.Last4) {
			if out, err := d.asPerson(t, environ, "keys", "revoke", key.ID); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			revoked++
		}
	}
	if revoked != 1 {
		t.Fatalf("revoked %d keys of\n%s\nwant the one of the command line", revoked, out)
	}
	// The server learns of it from the log.
	for deadline := time.Now().Add(demoPatience); ; time.Sleep(100 * time.Millisecond) {
		if out, err := d.asPerson(t, environ, "price", "BTC"); err != nil || !strings.Contains(out, "bitcoin") {
			t.Fatalf("after the key was revoked: got %v and %s, want a price", err, out)
		}
		after, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if string(after) != string(before) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the key is still that which was revoked")
		}
	}
}
