package chaos

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/marketlog/marketlog/stream/streamtest"
)

// cluster is an installation whose roles are processes apart, on a real Kafka and a real Redis, with
// the engine in one more process.
type cluster struct {
	installation
	binary, dir string
	environment []string // of every role
	broker      *streamtest.KafkaProcess
	redis       *streamtest.RedisProcess
	nodes       map[string]*node
}

// node is one role's program and its present life.
type node struct {
	program
	name    string
	dir     string
	metrics string
	rest    string // of a query
	life    *process
	// shift is how far ahead of the machine's the clock of the next life is.
	shift time.Duration
}

// names of the nodes; the part before the dash is the role.
const (
	engineNode   = "engine"
	produceNode  = "produce"
	processNodeA = "process-a"
	processNodeB = "process-b"
	processNodeC = "process-c" // comes and goes
	queryNodeA   = "query-a"
	queryNodeB   = "query-b"
)

// newCluster starts Kafka and Redis, and prepares the roles, for a short round or a long one. The roles reach the stores by the ways, or
// without any straight; the test always does.
func newCluster(t *testing.T, binary string, s *scene, short bool, by *ways) *cluster {
	t.Helper()
	keepCores(t)
	c := &cluster{binary: binary, dir: t.ArtifactDir(), nodes: map[string]*node{}} // kept with -artifacts
	c.redis = streamtest.StartRedis(t)
	c.acks = filepath.Join(c.dir, "acked")
	var server string
	freePorts(t, &c.sql, &server)
	brokers, redis, clickhouse := "", c.redis.Addr(), server
	if by == nil {
		c.broker = streamtest.StartKafka(t)
		brokers = c.broker.Addr()
	} else {
		var behind string
		c.broker, behind = streamtest.StartKafkaBehind(t, by.kafka.addr)
		by.kafka.leadTo(behind)
		by.redis.leadTo(redis)
		by.clickhouse.leadTo(server)
		brokers, redis, clickhouse = by.kafka.addr, by.redis.addr, by.clickhouse.addr
	}
	c.kafka = c.broker.Addr()
	reader := []string{setting("sql.user", "reader"), setting("sql.password_file", c.secret(t, "reader"))}
	own := append(slices.Clone(reader),
		setting("clickhouse.listen", server), setting("clickhouse.password_file", c.secret(t, "password")), setting("sql_listen", c.sql),
	)
	c.environment = append(onlyScripted(t, binary, s.coinbase, s.kraken),
		setting("kafka.brokers", brokers), setting("redis.addr", redis), setting("clickhouse.addr", clickhouse),
		setting("clickhouse.password_file", filepath.Join(c.dir, "password")), setting("auth.pepper_file", c.secret(t, "pepper")),
		setting("feeds", "live"), "MARKETLOG_ACK_LOG="+c.acks, "MARKETLOG_ACK_RECORDS="+c.acks+".records")
	if s.polled != nil {
		c.environment = append(c.environment, s.polled.settings(short)...)
	}
	c.add(t, engineNode, own)
	for _, name := range []string{produceNode, processNodeA, processNodeB, processNodeC} {
		c.add(t, name, c.environment)
	}
	for _, name := range []string{queryNodeA, queryNodeB} {
		c.add(t, name, slices.Concat(c.environment, reader))
	}
	s.in = &c.installation
	return c
}

// keepCores lets processes that crash leave a core, as far as the machine's hard limit goes.
func keepCores(t *testing.T) {
	t.Helper()
	var limit syscall.Rlimit
	err := syscall.Getrlimit(syscall.RLIMIT_CORE, &limit)
	if limit.Cur = limit.Max; err == nil {
		err = syscall.Setrlimit(syscall.RLIMIT_CORE, &limit)
	}
	if err != nil {
		t.Logf("no cores will be written: %v", err)
	}
}

func (c *cluster) secret(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(c.dir, name)
	if err := os.WriteFile(path, []byte(rand.Text()+rand.Text()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func (c *cluster) add(t *testing.T, name string, environment []string) {
	t.Helper()
	role, _, _ := strings.Cut(name, "-")
	n := &node{name: name, dir: filepath.Join(c.dir, name)}
	freePorts(t, &n.metrics, &n.rest)
	n.program = program{
		command:     []string{c.binary, role, "--data-dir", n.dir, "--metrics-listen", n.metrics, "--listen", n.rest},
		environment: environment, killed: filepath.Join(c.dir, "killed"), log: filepath.Join(c.dir, name+".log"),
	}
	c.nodes[name] = n
}

// start begins the next life of a node; fault is step:n, or empty.
func (n *node) start(t *testing.T, fault string) {
	t.Helper()
	n.life = n.program.start(t, fault, n.shift)
}

// ready asks whether the node has caught up.
func (n *node) ready() error {
	client := http.Client{Timeout: 5 * time.Second}
	answer, err := client.Get("http://" + n.metrics + "/readyz")
	if err != nil {
		return fmt.Errorf("asking %s: %w", n.name, err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s is not ready: %s: %s", n.name, answer.Status, body)
	}
	return nil
}

// awaitReady waits until all nodes that live are ready, and complains of those that ended.
func (c *cluster) awaitReady(t *testing.T) {
	t.Helper()
	eventually(t, "the cluster being ready", 3*time.Minute, func() error {
		var missing error
		for _, n := range c.nodes {
			if n.life == nil {
				continue
			}
			if n.life.ended(0) {
				t.Fatalf("%s ended by itself: %v\n%s", n.name, n.life.state, n.tail())
			}
			missing = errors.Join(missing, n.ready())
		}
		return missing
	})
}

// key issues an API key through a node.
func (c *cluster) key(t *testing.T, n *node) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), c.binary, "keys", "create", "--plan", "enterprise", "-o", "json", "--data-dir", n.dir)
	command.Env = append(os.Environ(), c.environment...)
	out, err := command.Output()
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		t.Fatalf("making a key: %v\n%s", err, failed.Stderr)
	}
	var made struct{ Key string }
	if err == nil {
		err = json.Unmarshal(out, &made)
	}
	if err != nil || made.Key == "" {
		t.Fatalf("making a key: %v\n%s", err, out)
	}
	return made.Key
}

// summary is what a query answers of one coin.
type summary struct {
	Price                               float64
	Providers, Rejected                 int
	Min, Max, Median, Confidence, Score float64
	Source                              string
	Volume24h                           float64
	Timestamp                           time.Time
}

// refusedLimit is how long a replica may refuse: where the store was emptied after another one ended, until what that one may
// have admitted counts no more, 64 s after it ended, and as long as a busy machine takes.
const refusedLimit = 90 * time.Second

// summaries are what a query answers of all coins, by their ids; asked again, as a client does, where it has to wait.
func (n *node) summaries(t *testing.T, key string) map[string]summary {
	t.Helper()
	for began := time.Now(); ; {
		list, status, body := n.askSummaries(t, key)
		if status == http.StatusOK {
			return list
		}
		if status != http.StatusTooManyRequests || time.Since(began) > refusedLimit {
			t.Fatalf("%s answers %d after %v: %s", n.name, status, time.Since(began).Round(time.Second), body)
		}
		select {
		case <-t.Context().Done():
		case <-time.After(time.Second):
		}
	}
}

// checkSQL asks the same rows by a key over the API and at the SQL port of the engine's node: over the API a process that holds no tables
// asks the engine's, as a user that reads only.
func (n *node) checkSQL(t *testing.T, in *installation, key string) {
	t.Helper()
	ask := func(statement string) (status int, body string) {
		status, raw := n.ask(t, http.MethodPost, "/api/v1/sql?format=CSVWithNames", statement, key)
		return status, string(raw)
	}
	const prices = "SELECT coin_id, count() AS rows, max(time) AS newest FROM v_prices GROUP BY coin_id ORDER BY coin_id"
	want, err := in.query(t.Context(), prices+" FORMAT CSVWithNames")
	if err != nil {
		t.Fatal(err)
	}
	if status, body := ask(prices); status != http.StatusOK || body != string(want) || strings.Count(body, "\n") < 2 {
		t.Errorf("a statement over %s: got %d %.500s\nwant %.500s", n.name, status, body, want)
	}
	for statement, want := range map[string]string{
		"SELECT * FROM v_usage":       "kept from this interface",
		"DROP TABLE marketlog.prices": "only reading is allowed here",
		"SELECT nothing FROM v_coins": "Unknown expression identifier",
	} {
		if status, body := ask(statement); status != http.StatusBadRequest || !strings.Contains(body, want) {
			t.Errorf("%s over %s: got %d %.500s, want 400 %s", statement, n.name, status, body, want)
		}
	}
}

// ask sends a request with a key over the API and reads the answer to its end.
func (n *node) ask(t *testing.T, method, path, body, key string) (status int, raw []byte) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, "http://"+n.rest+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+key)
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatalf("asking %s: %v\n%s", n.name, err, n.tail())
	}
	defer answer.Body.Close()
	if raw, err = io.ReadAll(answer.Body); err != nil {
		t.Fatalf("reading an answer of %s: %v", n.name, err)
	}
	return answer.StatusCode, raw
}

func (n *node) askSummaries(t *testing.T, key string) (list map[string]summary, status int, raw []byte) {
	t.Helper()
	if status, raw = n.ask(t, http.MethodGet, "/api/v1/prices/summary", "", key); status != http.StatusOK {
		return nil, status, raw
	}
	var body struct {
		Data struct {
			Prices map[string]struct {
				summary
				CoinID string `json:"coinId"`
			}
		}
	}
	if err := json.Unmarshal(raw, &body); err != nil {
		t.Fatalf("reading %s's answer: %v", n.name, err)
	}
	list = map[string]summary{}
	for _, p := range body.Data.Prices {
		list[p.CoinID] = p.summary
	}
	return list, status, nil
}
