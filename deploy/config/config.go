package config

import (
	"fmt"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/marketlog/marketlog/producers/exchanges"
	"github.com/marketlog/marketlog/producers/sources"
	"github.com/marketlog/marketlog/schemas"
)

// Config is all that an installation can be reported. Its keys in files are the koanf tags, joined by dots; in the
// environment MARKETLOG_ and the key in capitals with _ for dots. Addresses are HOST:PORT.
type Config struct {
	// DataDir holds all that this installation keeps; one running instance owns it.
	DataDir string `koanf:"data_dir"`
	// Listen serves REST and the price stream.
	Listen string `koanf:"listen"`
	// TLS encrypts Listen.
	TLS ServerTLSConfig `koanf:"tls"`
	// MetricsListen serves /metrics, /healthz and /readyz, without a key: an address of its own, since a proxy that
	// publishes Listen would publish it too. Port 0 is any free one, which the start prints; empty: nowhere.
	MetricsListen string `koanf:"metrics_listen"`
	// SQLListen serves read-only SQL of the embedded engine, on loopback since it asks for no key; empty: nowhere.
	SQLListen string    `koanf:"sql_listen"`
	SQL       SQLConfig `koanf:"sql"`
	// Feeds is sim (the built-in simulator), live (the venues themselves) or none.
	Feeds      string                 `koanf:"feeds"`
	Sim        SimConfig              `koanf:"sim"`
	Kafka      KafkaConfig            `koanf:"kafka"`
	ClickHouse ClickHouseConfig       `koanf:"clickhouse"`
	Redis      RedisConfig            `koanf:"redis"`
	Retention  RetentionConfig        `koanf:"retention"`
	Archive    ArchiveConfig          `koanf:"archive"`
	Lake       LakeConfig             `koanf:"lake"`
	Venues     map[string]VenueConfig `koanf:"venues"`
	// Sources are polled where feeds is live, or where their URL says otherwise.
	Sources  map[string]SourceConfig `koanf:"sources"`
	Backfill BackfillConfig          `koanf:"backfill"`
	Auth     AuthConfig              `koanf:"auth"`
	Plans    PlansConfig             `koanf:"plans"`
	Stream   StreamConfig            `koanf:"stream"`
	Page     PageConfig              `koanf:"page"`
	HTTP     HTTPConfig              `koanf:"http"`
	Log      LogConfig               `koanf:"log"`
}

// ServerTLSConfig names the certificate of REST and the stream, with what leads to its root, and its key, in PEM. Both are
// read again when they change. Empty: no encryption, which a proxy in front may add.
type ServerTLSConfig struct {
	Cert string `koanf:"cert"`
	Key  string `koanf:"key"`
}

// SimConfig steers the simulator.
type SimConfig struct {
	// Speed is how many seconds pass in one; above 1 the run starts 30 days in the past.
	Speed int `koanf:"speed"`
	// Seed decides every price; the same seed makes the same past.
	Seed int64 `koanf:"seed"`
	// Rate is how many messages all venues send in a second, if one subscribes to all of them: 1 to 100,000.
	Rate int `koanf:"rate"`
}

// KafkaConfig reports where the log is: at Brokers, or in this process if there are none.
type KafkaConfig struct {
	Brokers []string `koanf:"brokers"`
	// ReplicationFactor of topics that are created; -1 is the brokers' default.
	ReplicationFactor int        `koanf:"replication_factor"`
	TLS               TLSConfig  `koanf:"tls"`
	SASL              SASLConfig `koanf:"sasl"`
	// Listen is the embedded broker's address, loopback since what goes over it is not encrypted and reading needs no password.
	Listen string `koanf:"listen"`
	// SyncWrites makes the embedded broker flush each batch to the disk: it then survives power failures too.
	SyncWrites bool `koanf:"sync_writes"`
}

// TLSConfig secures a connection. Without a CA file the system's certificates are trusted.
type TLSConfig struct {
	Enabled  bool   `koanf:"enabled"`
	CAFile   string `koanf:"ca_file"`
	CertFile string `koanf:"cert_file"`
	KeyFile  string `koanf:"key_file"`
}

// SASLConfig names a Kafka user; an empty mechanism means no authentication.
type SASLConfig struct {
	// Mechanism is plain, scram-sha-256 or scram-sha-512.
	Mechanism    string `koanf:"mechanism"`
	User         string `koanf:"user"`
	PasswordFile string `koanf:"password_file"`
}

// ClickHouseConfig reports where the views are: at Addr, or in this process if it is empty.
type ClickHouseConfig struct {
	// Addr is the HTTP address of one server: a list of one, or empty. Replicated and distributed tables are not made.
	Addr []string `koanf:"addr"`
	// Listen is where `marketlog engine` serves the embedded engine to the other roles, loopback since passwords and
	// rows go over it in the clear. They name it in Addr.
	Listen       string `koanf:"listen"`
	Database     string `koanf:"database"`
	User         string `koanf:"user"`
	PasswordFile string `koanf:"password_file"`
	// Library is the path of libchdb for the embedded engine; empty: where `marketlog engine fetch` puts it.
	Library string `koanf:"library"`
	// TLS secures the connection to Addr.
	TLS TLSConfig `koanf:"tls"`
}

// RedisConfig reports where the latest values are: at Addr (several: a cluster), or in this process if it is empty.
type RedisConfig struct {
	Addr         []string  `koanf:"addr"`
	User         string    `koanf:"user"`
	PasswordFile string    `koanf:"password_file"`
	TLS          TLSConfig `koanf:"tls"`
}

// RetentionConfig bounds what is kept.
type RetentionConfig struct {
	// LogBytes bounds the embedded broker's log, shared out as the topic table does. The broker reads all of it into
	// memory at start. On a cluster, the topics' own settings decide.
	LogBytes int64 `koanf:"log_bytes"`
	// PriceDays is how many days of prices ClickHouse keeps to the second, beside the last of each hour, which stays;
	// 0: 1 day in the embedded engine, 7 in a server.
	PriceDays int `koanf:"price_days"`
	// DiskBytes is what the embedded log, its archive and the embedded tables may take on the disk together; 0: no such bound. Beyond it the
	// oldest ticks are dropped, then the oldest prices to the second, then the oldest days of what is kept otherwise.
	DiskBytes int64 `koanf:"disk_bytes"`
	// ReserveBytes is how much of the data directory's disk is to stay free: below it ingest pauses. 0: 1 GiB or a
	// twentieth of the disk, whichever is less.
	ReserveBytes int64 `koanf:"reserve_bytes"`
}

// ArchiveConfig says where the log is kept that the brokers have no longer.
type ArchiveConfig struct {
	// Enabled is true or false; auto: the embedded log is archived, a cluster's is not. The embedded broker deletes only what
	// is archived.
	Enabled string `koanf:"enabled"`
	// Dir is the archive's directory, one for each installation; empty: archive in the data directory.
	Dir string `koanf:"dir"`
	// Bucket is where the archive is instead of a directory, if it names one.
	Bucket BucketConfig `koanf:"bucket"`
	// Bytes bounds the archive: beyond it the oldest ticks and prices are deleted. What can be got nowhere again, as
	// observations of sources and candles, is kept whatever its size. 0: retention.disk_bytes bounds it, or 20 GiB where that counts no archive.
	Bytes int64 `koanf:"bytes"`
}

// BucketConfig names a bucket of a server that speaks S3 and honours If-None-Match. It exists, and no other installation writes
// beneath the same prefix.
type BucketConfig struct {
	// Endpoint is the URL of the server.
	Endpoint string `koanf:"endpoint"`
	Name     string `koanf:"name"`
	// Prefix begins the names of all objects; empty: nothing.
	Prefix string `koanf:"prefix"`
	// Region is what requests are signed for; empty: what the server reports.
	Region string `koanf:"region"`
	// AccessKey names who asks, SecretKeyFile holds what requests are signed with. Both empty: AWS_ACCESS_KEY_ID and
	// AWS_SECRET_ACCESS_KEY, the file of shared credentials, or the role of the machine.
	AccessKey     string `koanf:"access_key"`
	SecretKeyFile string `koanf:"secret_key_file"`
}

// MinArchiveBytes is some hours of a few markets.
const MinArchiveBytes = 1 << 30

// VenueConfig overrides what is built in for one venue; empty fields keep it.
type VenueConfig struct {
	Enabled bool   `koanf:"enabled"`
	WSURL   string `koanf:"ws_url"`
	RESTURL string `koanf:"rest_url"`
	// Symbols are the venue's own; empty: the markets of the coin table whose quote can be converted.
	Symbols []string `koanf:"symbols"`
}

// SourceConfig overrides what is built in for one polled source; an empty field keeps it.
type SourceConfig struct {
	// Enabled is true or false; auto: what `marketlog sources enable|disable` set last, else as the source is declared.
	Enabled string `koanf:"enabled"`
	URL     string `koanf:"url"`
	// KeyFile holds the key of a source that takes one.
	KeyFile string `koanf:"key_file"`
	// Interval is that of the source's most frequent feed; the others are read as much more or less often.
	Interval time.Duration `koanf:"interval"`
	// Requests may be made within Per, every attempt counted.
	Requests int           `koanf:"requests"`
	Per      time.Duration `koanf:"per"`
}

// BackfillConfig reports what `marketlog run` reads of the past by itself, so that its charts show more than what it saw: of
// venues days for five years, hours for 30 days, minutes for one, of the best known coins first; of sources of rates days
// for a year or hours for 30 days, of their best known pools or currencies. It is ready when that is over. An accelerated
// simulator is not asked.
type BackfillConfig struct {
	Enabled bool `koanf:"enabled"`
	// Sources are venues and polled sources, read at a time; one that is not enabled is skipped. Without a venue that
	// has USD markets of stablecoins, markets quoted in those cannot be converted.
	Sources []string `koanf:"sources"`
	// Seconds is how long it may take; as many coins are read as fit into the venues' budgets. What did not fit after
	// all, the next start reads.
	Seconds int `koanf:"seconds"`
}

// SQLConfig bounds what analysts' SQL may use of this machine.
type SQLConfig struct {
	// Statements run at once; one client has at most half of them, and more wait.
	Statements int `koanf:"statements"`
	// MemoryBytes bounds what all of them together may allocate; one has at most 1 GiB.
	MemoryBytes int64 `koanf:"memory_bytes"`
	// Hosts are names, beside addresses and localhost, by which the port is reached.
	Hosts []string `koanf:"hosts"`
	// User, with its password, is the one as whom POST /api/v1/sql asks the server at clickhouse.addr, and by whom `marketlog engine`
	// knows such statements; it may only read. Empty: that path answers where the embedded engine runs only.
	User         string `koanf:"user"`
	PasswordFile string `koanf:"password_file"`
}

// AuthConfig reports who may ask.
type AuthConfig struct {
	// Mode is required, optional (no key: served as plan Free) or open (all served as Pro; loopback only).
	Mode string `koanf:"mode"`
	// PepperFile holds the secret of the keys' hashes, the same for every process of an installation;
	// empty: a file in the data directory, made on the first start.
	PepperFile string `koanf:"pepper_file"`
	// TrustedProxies are addresses and networks of proxies whose X-Forwarded-For is believed: by whom a request without a
	// key, or with a bad one, was sent.
	TrustedProxies []string `koanf:"trusted_proxies"`
}

// StreamConfig reports who may open the price stream.
type StreamConfig struct {
	// Origins are the web origins besides the server's own whose pages may, such as https://app.example.com. What is no
	// browser names no origin, and needs none.
	Origins []string `koanf:"origins"`
	// RingBytes bounds the published prices that are kept in memory for clients that come back: 32 bytes each. What is older
	// they are distinguished from the store.
	RingBytes int `koanf:"ring_bytes"`
}

// PageConfig reports where the pages are reached.
type PageConfig struct {
	// Hosts are the names, without a port, under which a proxy publishes the pages over TLS, such as prices.example.com. What is
	// asked under another name gets no session; addresses and localhost need not be named.
	Hosts []string `koanf:"hosts"`
}

// HTTPConfig reports who may read the API.
type HTTPConfig struct {
	// CORS lets web pages of any origin read the API, with keys of their own; not where auth.mode is open.
	CORS bool `koanf:"cors"`
}

// LogConfig reports what is written to standard error.
type LogConfig struct {
	// Level is debug, info, warn or error.
	Level string `koanf:"level"`
	// Format is auto (text on a terminal, else json), text or json.
	Format string `koanf:"format"`
}

// DefaultConfig is everything embedded, on loopback, fed by the simulator.
func DefaultConfig() Config {
	cfg := Config{
		DataDir:       "data",
		Listen:        "127.0.0.1:8080",
		MetricsListen: "127.0.0.1:0", // roles apart may share a machine
		SQLListen:     "127.0.0.1:8123",
		SQL:           SQLConfig{Statements: 8, MemoryBytes: 2 << 30},
		Feeds:         "sim",
		Sim:           SimConfig{Speed: 1, Seed: 1, Rate: 1500},
		Kafka:         KafkaConfig{Listen: "127.0.0.1:9092", ReplicationFactor: -1},
		ClickHouse:    ClickHouseConfig{Database: "marketlog", Listen: "127.0.0.1:8124"},
		Retention:     RetentionConfig{LogBytes: tableBytes(), DiskBytes: 30_000_000_000},
		Archive:       ArchiveConfig{Enabled: archiveAuto},
		Lake:          LakeConfig{Datasets: []string{"trades", "prices", "candles_1m", "venue_candles_1m", "coverage"}, Format: "parquet", Days: 30},
		Stream:        StreamConfig{RingBytes: 64 << 20},
		Venues:        make(map[string]VenueConfig),
		Sources:       make(map[string]SourceConfig),
		Backfill: BackfillConfig{
			Enabled: true, Seconds: 110,
			Sources: []string{"binance", "bitstamp", "defillama", "defillama-yields", "okx-earn", "bitfinex-funding", "lido"},
		},
		Auth: AuthConfig{Mode: "required"},
		HTTP: HTTPConfig{CORS: true},
		Log:  LogConfig{Level: "info", Format: "auto"},
	}
	for _, venue := range exchanges.List() {
		cfg.Venues[venue.Slug] = VenueConfig{Enabled: true}
	}
	for _, source := range sources.List() {
		cfg.Sources[source.Slug] = SourceConfig{Enabled: SourceAuto}
	}
	return cfg
}

// tableBytes is the bound of the embedded log in the topic table.
func tableBytes() (sum int64) {
	for _, t := range schemas.Topics {
		sum += t.EmbeddedBytes * int64(t.Partitions)
	}
	return sum
}

// MinLogBytes leaves each partition of the table a few segments of some use.
const MinLogBytes = 64 << 20

// MinReserveBytes is what marks, ledgers and a gap take while a log is worked off.
const MinReserveBytes = 4 << 20

// Validate names every value that cannot be, whatever the role; the error is of type Faults.
func (c Config) Validate() error {
	var f Faults
	loopback := func(key, addr, why string) {
		if addr != "" && f.address(key, addr) && !isLoopback(addr) {
			f.add(key, addr, "is not a loopback address, and "+why, "use 127.0.0.1:PORT")
		}
	}
	f.required("data_dir", c.DataDir, "name a directory")
	if f.required("listen", c.Listen, "use HOST:PORT") {
		f.address("listen", c.Listen)
	}
	if c.MetricsListen != "" {
		f.address("metrics_listen", c.MetricsListen)
	}
	loopback("sql_listen", c.SQLListen, "SQL asks for no key")
	loopback("kafka.listen", c.Kafka.Listen, "the embedded broker lets everybody read without a password")
	loopback("clickhouse.listen", c.ClickHouse.Listen, "what goes over it is not encrypted")
	if len(c.Kafka.Brokers) == 0 {
		f.required("kafka.listen", c.Kafka.Listen, "use HOST:PORT, or name kafka.brokers")
	}
	f.oneOf("feeds", c.Feeds, "sim", "live", "none")
	f.oneOf("auth.mode", c.Auth.Mode, "required", "optional", "open")
	f.proxies("auth.trusted_proxies", c.Auth.TrustedProxies)
	_, plans := c.Plans.load()
	f = append(f, plans...)
	f.oneOf("log.level", c.Log.Level, "debug", "info", "warn", "error")
	f.oneOf("log.format", c.Log.Format, "auto", "text", "json")
	f.oneOf("kafka.sasl.mechanism", c.Kafka.SASL.Mechanism, "", "plain", "scram-sha-256", "scram-sha-512")
	if c.Auth.Mode == "open" {
		for key, addr := range map[string]string{"listen": c.Listen, "metrics_listen": c.MetricsListen} {
			if addr != "" && !isLoopback(addr) {
				f.add("auth.mode", c.Auth.Mode, fmt.Sprintf("serves everybody, and %s is %s", key, addr), "make "+key+" loopback, or use required")
			}
		}
	}
	if c.Kafka.SASL.Mechanism != "" {
		f.required("kafka.sasl.user", c.Kafka.SASL.User, "name the user")
		f.required("kafka.sasl.password_file", c.Kafka.SASL.PasswordFile, "name a file that holds the password")
	}
	for _, tls := range []struct {
		key string
		TLSConfig
	}{{"kafka.tls", c.Kafka.TLS}, {"clickhouse.tls", c.ClickHouse.TLS}, {"redis.tls", c.Redis.TLS}} {
		if (tls.CertFile == "") != (tls.KeyFile == "") {
			f.add(tls.key+".cert_file", tls.CertFile, "goes with "+tls.key+".key_file", "set both or none")
		}
		if !tls.Enabled && (tls.CAFile != "" || tls.CertFile != "") {
			f.add(tls.key+".enabled", "false", "leaves the connection in the clear, although its certificates are named", "set it to true, or name no files")
		}
	}
	if (c.TLS.Cert == "") != (c.TLS.Key == "") {
		f.add("tls.cert", c.TLS.Cert, "goes with tls.key", "set both or none")
	}
	if r := c.Kafka.ReplicationFactor; r != -1 && (r < 1 || r > 32767) {
		f.add("kafka.replication_factor", strconv.Itoa(r), "is not a number of replicas", "use -1 for the brokers' default, or 1 and more")
	}
	if c.Sim.Speed < 1 || c.Sim.Speed > 1_000_000 {
		f.add("sim.speed", strconv.Itoa(c.Sim.Speed), "is outside 1 to 1000000", "use 1 for real time")
	}
	if c.Sim.Rate < 1 || c.Sim.Rate > 100_000 {
		f.add("sim.rate", strconv.Itoa(c.Sim.Rate), "is outside 1 to 100000 messages a second", "use 1500, the default")
	}
	if c.Sim.Speed > 1 && c.Feeds != "sim" {
		f.add("sim.speed", strconv.Itoa(c.Sim.Speed), "needs the simulator, and feeds is "+c.Feeds, "use feeds sim, or speed 1")
	}
	for _, source := range c.Backfill.Sources {
		if Historic(source) != nil {
			f.add("backfill.sources", source, "has no history", "use some of "+strings.Join(append(historicVenues(), historicSources()...), ", "))
		}
	}
	if c.Backfill.Seconds < 1 || c.Backfill.Seconds > 3600 {
		f.add("backfill.seconds", strconv.Itoa(c.Backfill.Seconds), "is outside 1 to 3600", "use `marketlog backfill` for what takes longer")
	}
	if d := c.Retention.PriceDays; d < 0 || d > 3650 {
		f.add("retention.price_days", strconv.Itoa(d), "is outside 0 to 3650", "use 0 for the default")
	}
	if b := c.Retention.ReserveBytes; b != 0 && b < MinReserveBytes {
		f.add("retention.reserve_bytes", strconv.FormatInt(b, 10), "is too small to write marks and gaps in", fmt.Sprintf("use %d (4 MiB) or more, or 0 for the default", MinReserveBytes))
	}
	c.validateDiskBudget(&f)
	c.Archive.validate(&f)
	c.Lake.validate(&f)
	if c.Retention.LogBytes < MinLogBytes {
		f.add("retention.log_bytes", strconv.FormatInt(c.Retention.LogBytes, 10), "is too small to be shared out among the topics", fmt.Sprintf("use %d (64 MiB) or more", MinLogBytes))
	}
	for i, list := range [][]string{c.Kafka.Brokers, c.ClickHouse.Addr, c.Redis.Addr} {
		for _, addr := range list {
			f.address([]string{"kafka.brokers", "clickhouse.addr", "redis.addr"}[i], addr)
		}
	}
	if len(c.ClickHouse.Addr) > 1 {
		f.add("clickhouse.addr", strings.Join(c.ClickHouse.Addr, ","), "names more than one server, and the tables are made on one only, without replication",
			"name one server; a proxy before replicas does not help, since their tables would differ")
	}
	f.required("clickhouse.database", c.ClickHouse.Database, "name a database")
	if n := c.SQL.Statements; n < 1 || n > 256 {
		f.add("sql.statements", strconv.Itoa(n), "is outside 1 to 256", "use 8")
	}
	if b := c.SQL.MemoryBytes; b < 256<<20 {
		f.add("sql.memory_bytes", strconv.FormatInt(b, 10), "is too little for the engine", "use 268435456 (256 MiB) or more")
	}
	if c.SQL.User != "" {
		f.required("sql.password_file", c.SQL.PasswordFile, "name a file that holds the password of sql.user")
		if c.SQL.User == c.ClickHouse.User {
			f.add("sql.user", c.SQL.User, "is clickhouse.user, which may write", "make a user that may only read (docs/deployment.md)")
		}
	} else if c.SQL.PasswordFile != "" {
		f.add("sql.password_file", c.SQL.PasswordFile, "goes with sql.user", "set both or none")
	}
	if b := c.Stream.RingBytes; b < 1<<20 || b > 4<<30 {
		f.add("stream.ring_bytes", strconv.Itoa(b), "is outside 1048576 to 4294967296", "use 67108864 (64 MiB)")
	}
	for _, origin := range c.Stream.Origins {
		f.origin("stream.origins", origin)
	}
	for _, name := range c.Page.Hosts {
		f.hostname("page.hosts", name)
	}
	for name, venue := range c.Venues {
		f.url("venues."+name+".ws_url", venue.WSURL, "ws", "wss")
		f.url("venues."+name+".rest_url", venue.RESTURL, "http", "https")
	}
	for name, source := range c.Sources {
		f.source("sources."+name+".", name, source)
	}
	return f.Err()
}

// ValidateFor is Validate, and what the role cannot do without. Roles apart meet in a log and a store outside of them.
func (c Config) ValidateFor(role string) error {
	f, _ := c.Validate().(Faults)
	if role == "engine" {
		f.required("clickhouse.listen", c.ClickHouse.Listen, "use HOST:PORT")
		f.required("clickhouse.password_file", c.ClickHouse.PasswordFile, "name a file that holds the password which the other roles give")
		if len(c.ClickHouse.Addr) > 0 {
			f.add("clickhouse.addr", strings.Join(c.ClickHouse.Addr, ","), "names a server, and `marketlog engine` is one", "leave it empty here, and name clickhouse.listen in it for the other roles")
		}
		return f.Err()
	}
	if role != "run" {
		f.required("kafka.brokers", strings.Join(c.Kafka.Brokers, ","), "name the brokers, or use `marketlog run` for all roles in one process")
		if c.Sim.Speed > 1 {
			f.add("sim.speed", strconv.Itoa(c.Sim.Speed), "works in one process only", "use `marketlog run`, or speed 1")
		}
	}
	if role == "process" || role == "query" {
		f.required("clickhouse.addr", strings.Join(c.ClickHouse.Addr, ","), "name the server, or use `marketlog run`")
		f.required("redis.addr", strings.Join(c.Redis.Addr, ","), "name the server, or use `marketlog run`")
	}
	return f.Err()
}

func isLoopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// Fault is one wrong setting.
type Fault struct {
	Key     string `json:"key"`
	Value   string `json:"value"`
	Origin  string `json:"origin"`
	Problem string `json:"problem"`
	Remedy  string `json:"remedy"`
}

func (f Fault) Error() string {
	return fmt.Sprintf("%s = %q (%s): %s; %s", f.Key, f.Value, f.Origin, f.Problem, f.Remedy)
}

// Faults are all wrong settings at once.
type Faults []Fault

func (f Faults) Error() string {
	lines := make([]string, len(f))
	for i, fault := range f {
		lines[i] = fault.Error()
	}
	return strings.Join(lines, "\n")
}

// Err is nil without faults; the order is that of the keys, since maps are among the sources.
func (f Faults) Err() error {
	if len(f) == 0 {
		return nil
	}
	slices.SortStableFunc(f, func(a, b Fault) int { return strings.Compare(a.Key, b.Key) })
	return f
}

func (f *Faults) add(key, value, problem, remedy string) {
	*f = append(*f, Fault{Key: key, Value: Mask(key, value), Problem: problem, Remedy: remedy})
}

func (f *Faults) required(key, value, remedy string) bool {
	if value == "" {
		f.add(key, value, "is empty", remedy)
	}
	return value != ""
}

func (f *Faults) oneOf(key, value string, allowed ...string) {
	if !slices.Contains(allowed, value) {
		f.add(key, value, "is unknown", "use one of: "+strings.TrimPrefix(strings.Join(allowed, ", "), ", "))
	}
}

func (f *Faults) address(key, value string) bool {
	_, port, err := net.SplitHostPort(value)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		f.add(key, value, "is not an address", "use HOST:PORT")
	}
	return err == nil
}

func (f *Faults) url(key, value string, schemes ...string) {
	if value == "" {
		return
	}
	u, err := url.Parse(value)
	if err != nil || u.Host == "" || !slices.Contains(schemes, u.Scheme) {
		f.add(key, value, "is not such a URL", "use "+strings.Join(schemes, ":// or ")+"://HOST[:PORT][/PATH]")
	}
}

// origin checks what browsers send as one: compared byte for byte, so in their spelling.
func (f *Faults) origin(key, value string) {
	u, err := url.Parse(value)
	if err != nil || !slices.Contains([]string{"http", "https"}, u.Scheme) || u.Host == "" || value != strings.ToLower(u.Scheme+"://"+u.Host) {
		f.add(key, value, "is not a web origin", "use http:// or https://HOST[:PORT] in small letters, without a path")
	}
}

// hostnames are names as browsers send them, but no addresses, which need not be named.
var hostnames = regexp.MustCompile(`^([a-z0-9]([a-z0-9-]*[a-z0-9])?\.)*[a-z0-9-]*[a-z]([a-z0-9-]*[a-z0-9])?$`)

// hostname checks a name of this server.
func (f *Faults) hostname(key, value string) {
	if len(value) > 253 || !hostnames.MatchString(value) {
		f.add(key, value, "is not a host name", "use a name such as prices.example.com in small letters, without a scheme and a port")
	}
}

// Mask hides what must not be shown: passwords inside URLs, and values under keys that say that they are secret.
func Mask(key, value string) string {
	for _, word := range []string{"password", "secret", "token", "pepper"} {
		if strings.Contains(key, word) && !strings.HasSuffix(key, "_file") && value != "" {
			return "******"
		}
	}
	if u, err := url.Parse(value); err == nil && u.User != nil {
		u.User = url.User("******")
		return u.String()
	}
	return value
}
