package config

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/spf13/pflag"
)

func writeFile(t *testing.T, path, content string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func parsedFlags(t *testing.T, args ...string) *pflag.FlagSet {
	t.Helper()
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	AddConfigFlags(flags)
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	return flags
}

func TestDefaultsAreValid(t *testing.T) {
	cfg, _, err := LoadConfig(Sources{Flags: parsedFlags(t, "--data-dir", t.TempDir())})
	if err != nil {
		t.Fatal(err)
	}
	if err := cfg.ValidateFor("run"); err != nil {
		t.Error(err)
	}
}

// Each key is set in all sources from some point on; the strongest one that has it wins and is named.
func TestLaterSourcesWin(t *testing.T) {
	dir := t.TempDir()
	path := writeFile(t, filepath.Join(dir, configFileName), `
feeds: live
listen: 127.0.0.1:1
sql_listen: 127.0.0.1:1
kafka: {brokers: [a:1, b:2]}
venues: {okx: {ws_url: "wss://file/", symbols: [BTC-USDT]}}
stream: {origins: ["https://app.example"]}
sources: {ecb: {enabled: true, requests: 5}}
`)
	cfg, settings, err := LoadConfig(Sources{
		Env: []string{"MARKETLOG_LISTEN=127.0.0.1:2", "MARKETLOG_SQL_LISTEN=127.0.0.1:2", "MARKETLOG_VENUES_KRAKEN_REST_URL=https://env/", "MARKETLOG_SOURCES_ECB_URL=http://env/",
			"MARKETLOG_SOURCES_ECB_ENABLED=false", "MARKETLOG_SOURCES_ECB_INTERVAL=30m", "MARKETLOG_SOURCES_ECB_PER=1m", "PATH=/bin", "MARKETLOG_KILL_REPORT=x",
			"MARKETLOG_API_KEY=ck_live_x", "MARKETLOG_URL=http://127.0.0.1:8080"},
		Flags: parsedFlags(t, "--data-dir", dir, "--sql-listen", "127.0.0.1:3", "--sim-seed", "-7"),
	})
	if err != nil {
		t.Fatal(err)
	}
	want := DefaultConfig()
	want.DataDir, want.Feeds, want.Listen, want.SQLListen, want.Sim.Seed = dir, "live", "127.0.0.1:2", "127.0.0.1:3", -7
	want.Kafka.Brokers = []string{"a:1", "b:2"}
	want.Venues["okx"] = VenueConfig{Enabled: true, WSURL: "wss://file/", Symbols: []string{"BTC-USDT"}}
	want.Venues["kraken"] = VenueConfig{Enabled: true, RESTURL: "https://env/"}
	want.Stream.Origins = []string{"https://app.example"}
	want.Sources["ecb"] = SourceConfig{Enabled: "false", URL: "http://env/", Interval: 30 * time.Minute, Requests: 5, Per: time.Minute}
	if diff := cmp.Diff(want, cfg, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("configuration (-want +got):\n%s", diff)
	}
	origins := SettingOrigins(settings)
	for key, want := range map[string]string{
		"log.level": "default", "feeds": "file " + path, "kafka.brokers": "file " + path, "venues.okx.ws_url": "file " + path,
		"listen": "environment MARKETLOG_LISTEN", "venues.kraken.rest_url": "environment MARKETLOG_VENUES_KRAKEN_REST_URL",
		"sql_listen": "flag --sql-listen", "sim.seed": "flag --sim-seed",
	} {
		if origins[key] != want {
			t.Errorf("origin of %s: got %q, want %q", key, origins[key], want)
		}
	}
}

// A process under test inherits the variables that steer its test: none of them is taken for a setting with a wrong name.
func TestVariablesOfTestsAreNoSettings(t *testing.T) {
	root := filepath.Join("..", "..")
	read := regexp.MustCompile(`(?:Getenv\(|Variable = )"(MARKETLOG_[A-Z_]+)"`)
	passed := regexp.MustCompile(`(MARKETLOG_[A-Z_]+)=`)
	found := map[string]string{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		of := read
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == ".git" || entry.Name() == "node_modules"):
			return filepath.SkipDir
		case entry.Name() == "Makefile":
			of = passed
		case entry.IsDir() || !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		content, err := os.ReadFile(path)
		for _, match := range of.FindAllStringSubmatch(string(content), -1) {
			found[match[1]] = path
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(found) < 8 {
		t.Errorf("only %v are found", found)
	}
	for name, path := range found {
		if _, _, err := LoadConfig(Sources{Env: []string{name + "=1"}, Flags: parsedFlags(t, "--data-dir", t.TempDir())}); err != nil {
			t.Errorf("%s, of %s: %v", name, path, err)
		}
	}
}

func TestFaultsNameKeyValueOriginAndRemedy(t *testing.T) {
	tests := []struct {
		name, file string
		env, flags []string
		want       string // lines that must all be there, FILE for the file's path
	}{
		{name: "unknown key", file: "kafka: {brokrs: x}", want: `kafka.brokrs = "x" (file FILE): no setting has this name; kafka has: brokers, listen`},
		{name: "unknown section", file: "kakfa: {listen: x}", want: `kakfa.listen = "x" (file FILE): no setting has this name; see`},
		{name: "unknown venue", file: "venues: {mtgox: {enabled: true}}", want: `venues.mtgox.enabled = "true" (file FILE): no setting has this name; venues has: binance, `},
		{name: "a section as a value", file: "kafka: here", want: `kafka = "here" (file FILE): is a section`},
		{name: "a list as a value", file: "listen: [a, b]", want: `listen = "[a b]" (file FILE): is wrong; use one value`},
		{name: "a secret in the open", file: "clickhouse: {password: hunter2}", want: `clickhouse.password = "******" (file FILE): no setting has this name; write it to a file and name that in clickhouse.password_file`},
		{name: "unknown variable", env: []string{"MARKETLOG_LISTNE=x"}, want: `listne = "x" (environment MARKETLOG_LISTNE): no setting`},
		{name: "a fraction of a seed", file: "sim: {seed: 1.5}", want: `sim.seed = "1.5" (file FILE): is wrong; use a whole number`},
		{name: "not a switch", env: []string{"MARKETLOG_KAFKA_SYNC_WRITES=maybe"}, want: `kafka.sync_writes = "maybe" (environment MARKETLOG_KAFKA_SYNC_WRITES): is wrong; use true or false`},
		{name: "unknown feeds", flags: []string{"--feeds", "real"}, want: `feeds = "real" (flag --feeds): is unknown; use one of: sim, live, none`},
		{name: "no address", flags: []string{"--listen", "8080"}, want: `listen = "8080" (flag --listen): is not an address; use HOST:PORT`},
		{name: "no such port", flags: []string{"--listen", "127.0.0.1:99999"}, want: `listen = "127.0.0.1:99999" (flag --listen): is not an address`},
		{name: "SQL for the world", flags: []string{"--sql-listen", "0.0.0.0:1"}, want: `sql_listen = "0.0.0.0:1" (flag --sql-listen): is not a loopback address, and SQL asks for no key`},
		{name: "open to the world", file: "auth: {mode: open}", flags: []string{"--listen", ":80"}, want: `auth.mode = "open" (file FILE): serves everybody, and listen is :80`},
		{name: "a bucket without a server", file: "archive: {bucket: {name: Log, access_key: a}, dir: /x}",
			want: `archive.bucket.name = "Log" (file FILE): is not a name of a bucket; use 3 to 63 small letters` + "\n" +
				`archive.dir = "/x" (file FILE): names a directory beside archive.bucket.name` + "\n" +
				`archive.bucket.endpoint = "" (default): is empty; name the server` + "\n" +
				`archive.bucket.access_key = "a" (file FILE): goes with archive.bucket.secret_key_file`},
		{name: "a server without a bucket", file: "archive: {bucket: {endpoint: 's3.example.com/log', prefix: /a}}",
			want: `archive.bucket.name = "" (default): is empty; name a bucket` + "\n" +
				`archive.bucket.endpoint = "s3.example.com/log" (file FILE): is not such a URL; use http:// or https://` + "\n" +
				`archive.bucket.prefix = "/a" (file FILE): is not a prefix of object names`},
		{name: "the secret of a bucket in the open", file: "archive: {bucket: {secret_key: hunter2}}",
			want: `archive.bucket.secret_key = "******" (file FILE): no setting has this name; write it to a file and name that in archive.bucket.secret_key_file`},
		{name: "a lake that cannot be", file: "lake: {dir: here, datasets: [trades, stocks], format: tardis-csv, days: 0, keep_days: 4000}",
			want: `lake.dir = "here" (file FILE): is not an absolute path; name the directory from / on` + "\n" +
				`lake.datasets = "stocks" (file FILE): is not a dataset; name some of trades, quotes` + "\n" +
				`lake.format = "tardis-csv" (file FILE): is unknown; use one of: parquet, arrow, csv` + "\n" +
				`lake.days = "0" (file FILE): is outside 1 to 3660; use 30` + "\n" +
				`lake.keep_days = "4000" (file FILE): is outside lake.days (0) to 3660; use 0 to keep all days`},
		{name: "a lake of nothing", file: "lake: {dir: /lake, datasets: []}", want: `lake.datasets = "" (file FILE): is empty; name some of trades, quotes`},
		{name: "several at once", file: "feeds: x", env: []string{"MARKETLOG_LOG_LEVEL=loud"}, flags: []string{"--sim-speed", "0"},
			want: "feeds = \"x\" (file FILE)\nlog.level = \"loud\" (environment MARKETLOG_LOG_LEVEL)\nsim.speed = \"0\" (flag --sim-speed)"},
		{name: "source without a scheme", file: "sources: {ecb: {url: bank}}", want: `sources.ecb.url = "bank" (file FILE): is not such a URL; use http:// or https://`},
		{name: "a source as nobody can ask it", file: "sources: {ecb: {enabled: maybe, key_file: /k, interval: 1s, requests: -1, per: 48h}}",
			want: "sources.ecb.enabled = \"maybe\" (file FILE): is unknown; use one of: auto, true, false\n" +
				"sources.ecb.interval = \"1s\" (file FILE): is outside 10s to 168h0m0s\nsources.ecb.key_file = \"/k\" (file FILE): has no effect: the source takes no key\n" +
				"sources.ecb.per = \"48h0m0s\" (file FILE): is outside 1s to 24h0m0s\nsources.ecb.requests = \"-1\" (file FILE): is outside 1 to 10000"},
		{name: "an interval without a unit", file: "sources: {ecb: {interval: 90}}", want: `sources.ecb.interval = "90" (file FILE): is wrong; use a duration such as 90s or 15m`},
		{name: "no origin", env: []string{"MARKETLOG_STREAM_ORIGINS=https://a.example,app.example,https://b.example/x,https://C.example"},
			want: "stream.origins = \"app.example\" (environment MARKETLOG_STREAM_ORIGINS): is not a web origin; use http:// or https://HOST\n" +
				"stream.origins = \"https://b.example/x\"\nstream.origins = \"https://C.example\""},
		{name: "no host name", env: []string{"MARKETLOG_PAGE_HOSTS=prices.example.com,https://b.example,c.example:8080,10.0.0.1,Big.example"},
			want: "page.hosts = \"https://b.example\" (environment MARKETLOG_PAGE_HOSTS): is not a host name\n" +
				"page.hosts = \"c.example:8080\"\npage.hosts = \"10.0.0.1\"\npage.hosts = \"Big.example\""},
		{name: "a venue that has no history, for too long", file: "backfill: {sources: [kraken, upbit], seconds: 0}",
			want: "backfill.sources = \"upbit\" (file FILE): has no history; use some of binance, \nbackfill.seconds = \"0\" (file FILE): is outside 1 to 3600"},
		{name: "prices of the future", env: []string{"MARKETLOG_RETENTION_PRICE_DAYS=-1"}, want: `retention.price_days = "-1" (environment MARKETLOG_RETENTION_PRICE_DAYS): is outside 0 to 3650; use 0`},
		{name: "a small disk", env: []string{"MARKETLOG_RETENTION_DISK_BYTES=3000000000"},
			want: `retention.disk_bytes = "3000000000" (environment MARKETLOG_RETENTION_DISK_BYTES): is too small for the log (retention.log_bytes), archive and tables; use 3917479936 or more, or 0`},
		{name: "an archive that is larger than the disk", file: "archive: {bytes: 40000000000}",
			want: `archive.bytes = "40000000000" (file FILE): is more than retention.disk_bytes, which counts the archive; raise retention.disk_bytes`},
		{name: "no such scheme", file: "venues: {okx: {ws_url: 'https://me:hunter2@h/'}}", want: `venues.okx.ws_url = "https://%2A%2A%2A%2A%2A%2A@h/" (file FILE): is not such a URL; use ws:// or wss://`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "it.yaml")
			writeFile(t, path, test.file)
			_, settings, err := LoadConfig(Sources{File: path, Env: test.env, Flags: parsedFlags(t, append(test.flags, "--data-dir", dir)...)})
			var faults Faults
			if !errors.As(err, &faults) {
				t.Fatalf("got %v, want faults", err)
			}
			if len(settings) == 0 {
				t.Error("no settings beside the faults")
			}
			for line := range strings.Lines(strings.ReplaceAll(test.want, "FILE", path)) {
				if !strings.Contains(err.Error(), strings.TrimSpace(line)) {
					t.Errorf("got\n%v\nwant %q in it", err, line)
				}
			}
			if want := strings.Count(test.want, "\n") + 1; len(faults) != want {
				t.Errorf("got %d faults, want %d:\n%v", len(faults), want, err)
			}
			if strings.Contains(err.Error(), "hunter2") {
				t.Error("a secret is shown")
			}
		})
	}
}

func TestFileIsRefusedWhole(t *testing.T) {
	dir := t.TempDir()
	if _, _, err := LoadConfig(Sources{File: filepath.Join(dir, "none.yaml")}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a named file that is not there: got %v", err)
	}
	path := writeFile(t, filepath.Join(dir, "it.yaml"), "a: [")
	if _, _, err := LoadConfig(Sources{File: path}); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("no YAML: got %v, want the path in it", err)
	}
	writeFile(t, filepath.Join(dir, configFileName), "data_dir: elsewhere")
	if _, _, err := LoadConfig(Sources{Flags: parsedFlags(t, "--data-dir", dir)}); err == nil || !strings.Contains(err.Error(), "data_dir") {
		t.Errorf("a data directory that names another: got %v", err)
	}
}

func TestRolesApartNeedServers(t *testing.T) {
	cfg := DefaultConfig()
	for role, want := range map[string]string{"run": "", "produce": "kafka.brokers", "engine": "clickhouse.password_file", "process": "clickhouse.addr kafka.brokers redis.addr", "query": "clickhouse.addr kafka.brokers redis.addr"} {
		var got []string
		faults, _ := cfg.ValidateFor(role).(Faults)
		for _, f := range faults {
			got = append(got, f.Key)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: got faults in %v, want %q", role, got, want)
		}
	}
}
