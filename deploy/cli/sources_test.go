package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/marketlog/marketlog/deploy/admin"
	"github.com/marketlog/marketlog/deploy/cli/command"
	"github.com/marketlog/marketlog/deploy/config"
	"github.com/marketlog/marketlog/deploy/deploytest"
	"github.com/marketlog/marketlog/deploy/instance"
	"github.com/marketlog/marketlog/deploy/operations"
	"github.com/marketlog/marketlog/deploy/roles"
	"github.com/marketlog/marketlog/producers/sources"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// quietInstance is one in a directory of its own, whose sources are configured by change.
func quietInstance(t *testing.T, dir string, change func(*config.Config)) *instance.Instance {
	t.Helper()
	cfg := config.DefaultConfig()
	cfg.DataDir, cfg.Feeds, cfg.Kafka.Listen = dir, "live", deploytest.FreeAddr(t)
	change(&cfg)
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	in, err := instance.OpenInstance(t.Context(), cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return in
}

func TestConfigurationWinsOverCommandsAndTheseOverDeclarations(t *testing.T) {
	in := &instance.Instance{Config: config.DefaultConfig(), Log: slog.New(slog.DiscardHandler)}
	in.Config.Feeds = "live"
	var err error
	if in.Switches, err = instance.ReadSwitches(filepath.Join(t.TempDir(), instance.SwitchesFile)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		slug, configured string
		switched         string // on, off or never
		want             bool
		why              string // a word of it
	}{
		{"ecb", config.SourceAuto, "never", true, ""},
		{"ecb", config.SourceAuto, "off", false, "switched off"},
		{"ecb", "true", "off", true, "configured"},
		{"ecb", "false", "on", false, "configured"},
		{"erapi", config.SourceAuto, "never", false, "terms"},
		{"erapi", config.SourceAuto, "on", true, "switched on"},
		{"erapi", "true", "never", true, "configured"},
		{"kraken-earn", config.SourceAuto, "never", false, "accounts only"},
		{"kraken-earn", "true", "never", false, "key_file is not configured"},
	} {
		delete(in.Switches.On, c.slug)
		if c.switched != "never" {
			if err := in.Switches.Set(c.slug, c.switched == "on"); err != nil {
				t.Fatal(err)
			}
		}
		in.Config.Sources[c.slug] = config.SourceConfig{Enabled: c.configured}
		declared, _ := config.SourceNamed(c.slug)
		if got := in.SourceState(declared); got.Enabled != c.want || !strings.Contains(got.Why, c.why) {
			t.Errorf("%+v: asked %t because %q", c, got.Enabled, got.Why)
		}
	}
	// Beside the simulator, what it does not answer for is not asked in public; without feeds, nothing is.
	for _, feeds := range []string{"sim", "none"} {
		in.Config.Feeds = feeds
		for _, declared := range sources.List() {
			in.Config.Sources[declared.Slug] = config.SourceConfig{Enabled: config.SourceAuto}
			if got := in.SourceState(declared); got.Enabled {
				t.Errorf("feeds %s: %s is asked at %s", feeds, got.Slug, got.Address)
			}
		}
	}
}

func TestConfiguredSourcesKeepTheProportionOfTheirFeeds(t *testing.T) {
	declared, _ := config.SourceNamed("defillama")
	got := config.SourceConfig{Interval: 10 * time.Minute, Requests: 30, Per: time.Hour}.Configured(declared)
	if got.Feeds[0].Interval != 20*time.Minute || got.Feeds[2].Interval != 10*time.Minute || got.Requests != 30 || got.Per != time.Hour {
		t.Errorf("got %v, %v, %d in %s, want 20m, 10m, 30 in 1h", got.Feeds[0].Interval, got.Feeds[2].Interval, got.Requests, got.Per)
	}
	if again, _ := config.SourceNamed("defillama"); again.Feeds[0].Interval != declared.Feeds[0].Interval {
		t.Error("the declaration itself was changed")
	}
}

// bankServer answers as the European Central Bank does, and counts the requests.
type bankServer struct {
	*httptest.Server
	mu    sync.Mutex
	asked int
	body  string
}

const bankFile = `<g:Envelope xmlns:g="http://www.gesmes.org/xml/2002-08-01" xmlns="http://www.ecb.int/vocabulary/2002-08-01/eurofxref"><Cube><Cube time="2026-01-05"><Cube currency="USD" rate="1.1"/></Cube></Cube></g:Envelope>`

func newBank(t *testing.T) *bankServer {
	t.Helper()
	b := &bankServer{body: bankFile}
	b.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.asked++
		fmt.Fprint(w, b.body)
	}))
	t.Cleanup(b.Close)
	return b
}

func (b *bankServer) count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.asked
}

// A switch works on the running instance within seconds, is recorded in the log, and lasts.
func TestASwitchedSourceIsNotAskedUntilItIsSwitchedBack(t *testing.T) {
	bank := newBank(t)
	dir := t.TempDir()
	only := func(cfg *config.Config) {
		for name := range cfg.Sources {
			cfg.Sources[name] = config.SourceConfig{Enabled: "false"}
		}
		cfg.Sources["ecb"] = config.SourceConfig{Enabled: config.SourceAuto, URL: bank.URL, Requests: 1000}
	}
	life := func(work func(in *instance.Instance)) {
		in := quietInstance(t, dir, only)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- roles.RunSources(ctx, in) }()
		work(in)
		cancel()
		if err := <-done; err != nil {
			t.Errorf("running the sources: %v", err)
		}
		if err := in.Close(); err != nil {
			t.Error(err)
		}
	}
	life(func(in *instance.Instance) {
		awaitNotice(t, in, "ecb", true)
		eventually(t, "both files are read", func() bool { return bank.count() >= 2 })
		callVerb(t, in, "sources.switch", operations.SourceInput{Name: "ecb"})
		awaitNotice(t, in, "ecb", false)
		eventually(t, "its poller has ended", func() bool { _, ok := in.Sources.Get("ecb"); return !ok })
	})
	before := bank.count()
	life(func(in *instance.Instance) {
		awaitNotice(t, in, "ecb", false)
		if _, ok := in.Sources.Get("ecb"); ok || bank.count() != before {
			t.Errorf("a source that was switched off is asked after the next start, %d times", bank.count()-before)
		}
		line := callVerb(t, in, "sources.switch", operations.SourceInput{Name: "ecb", On: true})[0]
		if !strings.Contains(line, `"enabled":true`) {
			t.Errorf("switching on answers %s", line)
		}
		awaitNotice(t, in, "ecb", true)
		eventually(t, "it is read again", func() bool { return bank.count() > before })
	})
}

func TestAnExplicitConfigurationCannotBeSwitched(t *testing.T) {
	in := quietInstance(t, t.TempDir(), func(cfg *config.Config) { cfg.Sources["ecb"] = config.SourceConfig{Enabled: "true"} })
	defer in.Close()
	input, _ := json.Marshal(operations.SourceInput{Name: "ecb"})
	err := admin.NewVerbs(operations.SourceVerbs(in)...)["sources.switch"].Run(t.Context(), input, func(any) error { return nil })
	if err == nil || !strings.Contains(err.Error(), "sources.ecb.enabled is configured as true") {
		t.Errorf("got %v, want an error that names the setting", err)
	}
}

// The check asks each feed once and names what changed; a key goes to the source, and nowhere else.
func TestTheCheckNamesDriftAndShowsNoKey(t *testing.T) {
	bank := newBank(t)
	var key string
	gecko := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key = r.Header.Get("X-Cg-Demo-Api-Key")
		http.Error(w, `{"error":"not today"}`, http.StatusForbidden)
	}))
	defer gecko.Close()
	secret := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(secret, []byte("hunter2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	in := quietInstance(t, t.TempDir(), func(cfg *config.Config) {
		cfg.Sources["ecb"] = config.SourceConfig{Enabled: config.SourceAuto, URL: bank.URL}
		cfg.Sources["coingecko"] = config.SourceConfig{Enabled: config.SourceAuto, URL: gecko.URL, KeyFile: secret}
	})
	defer in.Close()
	check := func(name string) operations.CheckLine {
		var line operations.CheckLine
		if err := json.Unmarshal([]byte(callVerb(t, in, "sources.check", operations.SourceInput{Name: name})[0]), &line); err != nil {
			t.Fatal(err)
		}
		return line
	}
	if line := check("ecb"); line.Wrong() || line.Rows != 1 || line.Status != 200 {
		t.Errorf("got %+v, want one row and nothing wrong", line)
	}
	bank.body = strings.Replace(bankFile, "time=", "day=", 1)
	if line := check("ecb"); strings.Join(line.Drift, "; ") != "Envelope[].Cube[].Cube[].@time is gone" || line.Refused != 1 {
		t.Errorf("got %+v, want the missing field", line)
	}
	line := check("coingecko")
	if key != "hunter2" || line.Status != http.StatusForbidden || !strings.Contains(line.Error, "not today") {
		t.Errorf("asked with key %q, got %+v", key, line)
	}
	for _, text := range append(callVerb(t, in, "sources.list", operations.SourceInput{}), fmt.Sprint(line)) {
		if strings.Contains(text, "hunter2") {
			t.Errorf("the key is shown: %s", text)
		}
	}
	if text := strings.Join(callVerb(t, in, "sources.list", operations.SourceInput{}), ""); !strings.Contains(text, `"key":"configured"`) {
		t.Errorf("the list does not say that a key is configured: %s", text)
	}
}

// Without a running instance the commands work on the data directory.
func TestSourcesCommandsNeedNoRunningInstance(t *testing.T) {
	dir := t.TempDir()
	run := func(args ...string) (string, int) {
		var out bytes.Buffer
		app := command.Runtime{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &out}
		code := Execute(t.Context(), &app, append(append([]string{"sources"}, args...), "--data-dir", dir))
		return out.String(), code
	}
	if out, code := run("enable", "er-api"); code != 0 || !strings.Contains(out, "erapi") {
		t.Errorf("enable: exit %d, %s", code, out)
	}
	out, code := run("list", "-o", "json")
	if code != 0 || strings.Count(out, "\n") != len(sources.List()) {
		t.Errorf("list: exit %d, %s", code, out)
	}
	if content, err := os.ReadFile(filepath.Join(dir, instance.SwitchesFile)); err != nil || string(content) != "{\n  \"erapi\": true\n}\n" {
		t.Errorf("the data directory holds %q, %v", content, err)
	}
	if out, code := run("disable", "mtgox"); code == 0 || !strings.Contains(out, `no source "mtgox"; use one of aave, `) {
		t.Errorf("an unknown source: exit %d, %s", code, out)
	}
	if err := os.WriteFile(filepath.Join(dir, instance.SwitchesFile), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, code := run("list"); code == 0 || !strings.Contains(out, "remove "+filepath.Join(dir, instance.SwitchesFile)) {
		t.Errorf("a broken file: exit %d, %s", code, out)
	}
}

func callVerb(t *testing.T, in *instance.Instance, name string, input any) []string {
	t.Helper()
	encoded, err := json.Marshal(input)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	err = admin.NewVerbs(operations.SourceVerbs(in)...)[name].Run(t.Context(), encoded, func(line any) error {
		text, err := json.Marshal(line)
		lines = append(lines, string(text))
		return err
	})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return lines
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("after a minute it is not so that %s", what)
		}
	}
}

// awaitNotice waits until the last notice of a source reports whether it is asked.
func awaitNotice(t *testing.T, in *instance.Instance, slug string, enabled bool) {
	t.Helper()
	client, err := in.Stream.NewClient()
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	eventually(t, fmt.Sprintf("%s says enabled=%t", slug, enabled), func() bool {
		var last *eventsv1.SourceNotice
		err := operations.ReadAll(t.Context(), in.Stream, client, schemas.TopicReferenceRaw, func(r *kgo.Record) error {
			rec := &eventsv1.ReferenceRecord{}
			if err := rec.UnmarshalVT(r.Value); err != nil {
				return err
			}
			if n := rec.GetNotice(); n != nil && n.Source == slug {
				if n.IngestTime == 0 || n.Url == "" || n.Name == "" {
					return fmt.Errorf("notice %v", n)
				}
				last = n
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return last != nil && last.Enabled == enabled
	})
}
