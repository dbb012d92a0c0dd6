package chaos

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/marketlog/marketlog/deploy/admin"
	"github.com/marketlog/marketlog/stream/history"
)

const (
	// engineRounds is how many disturbances the gate makes; MARKETLOG_ENGINE_ROUNDS sets another number.
	engineRounds = 15
	// enginePassword opens the engine to its clients.
	enginePassword = "secret"
	// engineBack is how soon the engine answers after a disturbance, however busy the machine is.
	engineBack = 90 * time.Second
	// engineWords is how much of the engine's log is repeated when it died, in bytes.
	engineWords = 16 << 10
)

// engineScene is the engine as the split form runs it, with clients that write, read and exchange tables all the time.
type engineScene struct {
	t        *testing.T
	program  program
	dir      string
	addr     string
	life     *process
	group    atomic.Int64 // of the supervisor and the engine
	random   *rand.Rand
	deaths   int // that the supervisor's log has reported so far, all of them meant
	accepted atomic.Int64
	stop     context.CancelFunc
	clients  sync.WaitGroup
}

// engineDisturbance is something that happens to the engine.
type engineDisturbance struct {
	name string
	do   func(s *engineScene, r *rand.Rand)
	// often is how many of them there are to one of the rarest.
	often int
}

var engineDisturbances = []engineDisturbance{
	{"insert cut off", (*engineScene).cutInserts, 6},
	{"select cut off", (*engineScene).cutSelects, 6},
	{"readers that stall", (*engineScene).stall, 4},
	{"requests half sent", (*engineScene).halfRequests, 3},
	{"statements cancelled", (*engineScene).cancel, 6},
	{"statements killed by others", (*engineScene).killStatements, 4},
	{"connection storm", (*engineScene).connectionStorm, 3},
	{"memory used up", (*engineScene).useMemory, 3},
	{"statements with errors", (*engineScene).mistakes, 3},
	{"tables exchanged and dropped under readers", (*engineScene).exchange, 4},
	{"stopped and continued", (*engineScene).pause, 4},
	{"all of the processor taken", (*engineScene).burn, 2},
	{"engine killed", (*engineScene).killEngine, 2},
	{"supervisor killed", (*engineScene).killSupervisor, 1},
	{"asked to stop while busy", (*engineScene).stopInOrder, 1},
}

// The engine ends by nobody's hand but ours, whatever its clients do: each round disturbs it in up to three ways at once while
// others write, read and exchange tables. A death that was not meant fails the test, with the signal and the end of its standard
// error. MARKETLOG_ENGINE_ROUNDS is how many rounds there are, MARKETLOG_KILL_SEED what they are made of.
func TestDisturbedEngineLives(t *testing.T) {
	rounds := engineRounds
	if text := os.Getenv("MARKETLOG_ENGINE_ROUNDS"); text != "" {
		var err error
		if rounds, err = strconv.Atoi(text); err != nil || rounds < 1 {
			t.Fatalf("MARKETLOG_ENGINE_ROUNDS=%q, want how often the engine is disturbed, 1 or more", text)
		}
	}
	s := newEngineScene(t, seedOf(t))
	var kinds []engineDisturbance
	for _, d := range engineDisturbances {
		for range d.often {
			kinds = append(kinds, d)
		}
	}
	counts := map[string]int{}
	began := time.Now()
	for round := range rounds {
		var beside sync.WaitGroup
		var names []string
		var first func()
		for i := range 1 + s.random.IntN(3) {
			d := kinds[s.random.IntN(len(kinds))]
			if round < len(engineDisturbances) && i == 0 { // every kind comes in every run
				d = engineDisturbances[round]
			}
			if slices.Contains(names, d.name) || i > 0 && d.often <= 2 {
				continue // what ends the process, or stops the test, comes once in a round
			}
			names = append(names, d.name)
			counts[d.name]++
			own := rand.New(rand.NewPCG(s.random.Uint64(), s.random.Uint64()))
			if i == 0 { // it may fail the test, which only this goroutine can
				first = func() { d.do(s, own) }
				continue
			}
			beside.Go(func() { d.do(s, own) })
		}
		first()
		beside.Wait()
		s.look(fmt.Sprintf("round %d: %s", round+1, strings.Join(names, ", ")))
		if (round+1)%100 == 0 {
			t.Logf("%d rounds in %v, %d inserts acknowledged", round+1, time.Since(began).Round(time.Second), s.accepted.Load())
		}
	}
	s.end()
	total := 0
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		t.Logf("%4d times %s", counts[name], name)
		total += counts[name]
	}
	t.Logf("%d rounds of %d disturbances in %v, %d inserts acknowledged, %d deaths, all meant",
		rounds, total, time.Since(began).Round(time.Second), s.accepted.Load(), s.deaths)
}

func newEngineScene(t *testing.T, seed uint64) *engineScene {
	t.Logf("seed %d", seed)
	keepCores(t)
	folder := t.ArtifactDir() // kept with -artifacts
	s := &engineScene{t: t, dir: filepath.Join(folder, "data"), random: rand.New(rand.NewPCG(seed, 1))}
	password := filepath.Join(folder, "password")
	if err := os.WriteFile(password, []byte(enginePassword), 0o600); err != nil {
		t.Fatal(err)
	}
	var metrics string
	freePorts(t, &s.addr, &metrics)
	s.program = program{
		command: []string{
			build(t), "engine", "--data-dir", s.dir, "--clickhouse-listen", s.addr, "--sql-listen", "", "--metrics-listen", metrics,
		},
		environment: []string{setting("clickhouse.password_file", password)},
		killed:      filepath.Join(folder, "killed"), log: filepath.Join(folder, "engine.log"),
	}
	s.start()
	s.answers("the first start")
	cfg := history.Config{Addr: s.addr, Database: "marketlog", Password: enginePassword, Connections: 4}
	store, err := history.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	s.mustRun(`CREATE TABLE marketlog.kept (id UInt64, text String) ENGINE = ReplacingMergeTree ORDER BY id PARTITION BY id % 8`)
	s.mustRun(`INSERT INTO marketlog.candles_1m (coin_id, start, open, high, low, close, volume, volume_usd, trades, version)
		SELECT concat('coin', toString(number % 50)), toDateTime('2026-03-01 00:00:00', 'UTC') + intDiv(number, 50) * 60,
			1, 2, 0.5, 1, 1, 1, 1, number
		FROM numbers(200000)`)
	ctx, cancel := context.WithCancel(t.Context())
	s.stop = cancel
	t.Cleanup(s.clients.Wait)
	t.Cleanup(cancel)
	for i := range 2 {
		s.clients.Go(func() { s.write(ctx, uint64(i)) })
		s.clients.Go(func() { s.read(ctx, rand.New(rand.NewPCG(seed, uint64(i)))) })
	}
	return s
}

// send makes a request of the engine with a statement in its body.
func (s *engineScene) send(ctx context.Context, statement, settings string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+s.addr+"/?"+settings, strings.NewReader(statement))
	if err != nil {
		return nil, err
	}
	request.Header.Set("X-ClickHouse-Key", enginePassword)
	return http.DefaultClient.Do(request)
}

// run runs a statement to the end of its answer.
func (s *engineScene) run(ctx context.Context, statement, settings string) (string, error) {
	answer, err := s.send(ctx, statement, settings)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, 1<<20))
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", answer.Status, text)
	}
	return strings.TrimSpace(string(text)), err
}

func (s *engineScene) mustRun(statement string) {
	s.t.Helper()
	if _, err := s.run(s.t.Context(), statement, ""); err != nil {
		s.t.Fatalf("%s: %v\n%s", statement, err, s.program.tail())
	}
}

// write inserts rows, one number after the other, and counts those that were acknowledged; a failed insert is made again.
func (s *engineScene) write(ctx context.Context, lane uint64) {
	for n := uint64(0); ctx.Err() == nil; {
		first := lane<<40 + n*100
		statement := fmt.Sprintf("INSERT INTO marketlog.kept SELECT %d + number, repeat('x', 200) FROM numbers(100)", first)
		if _, err := s.run(ctx, statement, ""); err != nil {
			s.rest(ctx)
			continue
		}
		n++
		s.accepted.Add(1)
	}
}

// rest waits a little before a client that failed tries again.
func (s *engineScene) rest(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(20 * time.Millisecond):
	}
}

// read asks what the other roles and analysts ask.
func (s *engineScene) read(ctx context.Context, r *rand.Rand) {
	statements := []string{
		"SELECT * FROM default.v_candles_1h WHERE coin_id = 'coin7' FORMAT Native",
		"SELECT coin_id, max(high) FROM default.v_candles_1m GROUP BY coin_id",
		"SELECT count() FROM marketlog.kept FINAL",
		"SELECT * FROM marketlog.candles_1m FINAL ORDER BY volume_usd DESC LIMIT 10",
		"SELECT name, total_rows FROM system.tables WHERE database = 'marketlog'",
	}
	for ctx.Err() == nil {
		if _, err := s.run(ctx, statements[r.IntN(len(statements))], ""); err != nil {
			s.rest(ctx)
		}
	}
}

// cut opens a connection, sends text, waits, and resets it. Without an answer there is nothing to read.
func (s *engineScene) cut(r *rand.Rand, text string, read int, longest time.Duration) {
	conn, err := net.DialTimeout("tcp", s.addr, time.Second)
	if err != nil {
		return // it is being killed or stopped
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
	if _, err := io.WriteString(conn, text); err == nil && read > 0 {
		_, _ = io.CopyN(io.Discard, conn, int64(read))
	}
	lapse(time.Duration(r.Int64N(int64(longest))))
	_ = conn.(*net.TCPConn).SetLinger(0) // an RST instead of an orderly end
}

// lapse lets time pass: what another process makes of it cannot be waited for.
func lapse(d time.Duration) { <-time.After(d) }

func (s *engineScene) head(statement string, length int) string {
	return fmt.Sprintf("POST /?query=%s HTTP/1.1\r\nHost: engine\r\nX-ClickHouse-Key: %s\r\nContent-Length: %d\r\n\r\n",
		url.QueryEscape(statement), enginePassword, length)
}

// many does something up to n times at once.
func many(r *rand.Rand, n int, do func(r *rand.Rand)) {
	var all sync.WaitGroup
	for range 1 + r.IntN(n) {
		own := rand.New(rand.NewPCG(r.Uint64(), r.Uint64()))
		all.Go(func() { do(own) })
	}
	all.Wait()
}

func (s *engineScene) cutInserts(r *rand.Rand) {
	many(r, 12, func(r *rand.Rand) {
		rows := strings.Repeat("9223372036854775807\tcut\n", 1+r.IntN(20_000))
		s.cut(r, s.head("INSERT INTO marketlog.kept FORMAT TSV", len(rows))+rows[:r.IntN(len(rows))], 0, 80*time.Millisecond)
	})
}

func (s *engineScene) cutSelects(r *rand.Rand) {
	statements := []string{
		"SELECT number, repeat('y', 300) FROM numbers(100000000)",
		"SELECT * FROM marketlog.candles_1m FINAL ORDER BY start DESC FORMAT JSONEachRow",
		"SELECT * FROM default.v_candles_1d FORMAT Native",
		"SELECT sleepEachRow(0.02), number FROM numbers(200) SETTINGS max_block_size = 1",
		"SELECT a.number FROM numbers(3000000) AS a INNER JOIN numbers(3000000) AS b ON a.number = b.number ORDER BY a.number % 1000",
	}
	many(r, 12, func(r *rand.Rand) {
		s.cut(r, s.head(statements[r.IntN(len(statements))], 0), r.IntN(200_000), 150*time.Millisecond)
	})
}

// stall leaves answers unread while they fill what lies between, and hangs up.
func (s *engineScene) stall(r *rand.Rand) {
	many(r, 10, func(r *rand.Rand) {
		s.cut(r, s.head("SELECT number, repeat('z', 1000) FROM numbers(100000000) FORMAT RowBinary", 0), 1, 1500*time.Millisecond)
	})
}

func (s *engineScene) halfRequests(r *rand.Rand) {
	many(r, 40, func(r *rand.Rand) {
		text := s.head("INSERT INTO marketlog.kept FORMAT TSV", 1_000_000)
		s.cut(r, text[:r.IntN(len(text))], 0, time.Second)
	})
}

func (s *engineScene) cancel(r *rand.Rand) {
	many(r, 16, func(r *rand.Rand) {
		ctx, cancel := context.WithTimeout(s.t.Context(), time.Duration(r.Int64N(int64(120*time.Millisecond))))
		defer cancel()
		statements := []string{
			"SELECT max(cityHash64(number)) FROM numbers(10000000000)",
			"INSERT INTO marketlog.kept SELECT 9223372036854775807 - number % 10, 'cancelled' FROM numbers(5000000)",
			"SELECT * FROM default.v_candles_1d LIMIT 100",
			"OPTIMIZE TABLE marketlog.kept FINAL",
		}
		_, _ = s.run(ctx, statements[r.IntN(len(statements))], "") // it ends with an error, or was quick
	})
}

func (s *engineScene) killStatements(r *rand.Rand) {
	ctx, cancel := context.WithTimeout(s.t.Context(), 5*time.Second)
	defer cancel()
	var running sync.WaitGroup
	for range 1 + r.IntN(6) {
		running.Go(func() {
			_, _ = s.run(ctx, "SELECT /*victim*/ uniqExact(cityHash64(number)) FROM numbers(200000000)", "")
		})
	}
	for range 1 + r.IntN(8) {
		lapse(time.Duration(r.Int64N(int64(40 * time.Millisecond))))
		_, _ = s.run(ctx, "KILL QUERY WHERE query LIKE '%victim%' AND query NOT LIKE 'KILL%' SYNC", "")
	}
	cancel()
	running.Wait()
}

// connectionStorm opens many connections at once; each asks something small, or nothing.
func (s *engineScene) connectionStorm(r *rand.Rand) {
	many(r, 400, func(r *rand.Rand) {
		conn, err := net.DialTimeout("tcp", s.addr, time.Second)
		if err != nil {
			return
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
		if r.IntN(2) == 0 {
			return
		}
		if _, err := io.WriteString(conn, s.head("SELECT 1", 0)); err == nil {
			_, _ = bufio.NewReader(conn).ReadString('\n')
		}
	})
}

// useMemory runs statements that reach their own limit, and some that reach the engine's together.
func (s *engineScene) useMemory(r *rand.Rand) {
	ctx, cancel := context.WithTimeout(s.t.Context(), 20*time.Second)
	defer cancel()
	many(r, 6, func(r *rand.Rand) {
		statements := []string{
			"SELECT length(groupArray(repeat('m', 1000))) FROM numbers(100000000)",
			"SELECT uniqExact(number, toString(number)) FROM numbers(1000000000)",
			"SELECT count() FROM (SELECT number % 50000000 AS k, groupArray(number) FROM numbers(1000000000) GROUP BY k)",
			"SELECT count() FROM numbers(100000000) AS a " +
				"INNER JOIN (SELECT number, repeat('j', 100) AS text FROM numbers(100000000)) AS b ON a.number = b.number",
		}
		settings := fmt.Sprintf("max_memory_usage=%d&max_threads=2", (20+r.IntN(300))<<20)
		_, _ = s.run(ctx, statements[r.IntN(len(statements))], settings)
	})
}

func (s *engineScene) mistakes(r *rand.Rand) {
	ctx, cancel := context.WithTimeout(s.t.Context(), 20*time.Second)
	defer cancel()
	statements := []string{
		"SELECT", "SELECT FROM WHERE", "SELECT * FROM nowhere.nothing", "SELECT intDiv(1, 0)", "SELECT toDecimal256('x', 3)",
		"SELECT throwIf(number = 100000) FROM numbers(1000000)", "SELECT arrayJoin(range(100000000))", "SELECT 1 SETTINGS no_such = 1",
		"SELECT " + strings.Repeat("(", 2000) + "1" + strings.Repeat(")", 2000), "SELECT '" + strings.Repeat("l", 300_000) + "'",
		"CREATE TABLE marketlog.kept (id UInt64) ENGINE = Memory", "INSERT INTO marketlog.kept VALUES (1, ",
		"INSERT INTO marketlog.kept FORMAT Native\n\x01\x02\x03", "SYSTEM FLUSH LOGS", "SELECT * FROM system.stack_trace LIMIT 3",
	}
	many(r, 10, func(r *rand.Rand) { _, _ = s.run(ctx, statements[r.IntN(len(statements))], "") })
}

// exchange makes a copy of a table, changes names with it and drops it, as a replay does, while others read both.
func (s *engineScene) exchange(r *rand.Rand) {
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	name := "candles_1m_replay" + strconv.Itoa(1+r.IntN(3))
	for _, statement := range []string{
		"CREATE TABLE IF NOT EXISTS marketlog." + name + " AS marketlog.candles_1m",
		"INSERT INTO marketlog." + name + " SELECT * FROM marketlog.candles_1m FINAL",
		"EXCHANGE TABLES marketlog.candles_1m AND marketlog." + name,
		"DROP TABLE IF EXISTS marketlog." + name + " SYNC",
	} {
		_, _ = s.run(ctx, statement, "") // fails where the engine is killed meanwhile
	}
}

// pid is the process that serves, 0 while there is none.
func (s *engineScene) pid() int {
	info, ok, err := admin.RunningInstance(s.dir)
	if err != nil || !ok {
		return 0
	}
	return info.PID
}

// pause stops the engine at once, with or without its supervisor.
func (s *engineScene) pause(r *rand.Rand) {
	pid := s.pid()
	if r.IntN(2) == 0 {
		pid = -int(s.group.Load())
	}
	if pid == 0 || syscall.Kill(pid, syscall.SIGSTOP) != nil {
		return
	}
	lapse(time.Duration(r.Int64N(int64(1500 * time.Millisecond))))
	_ = syscall.Kill(pid, syscall.SIGCONT)
}

// burn takes the processor from the engine for a second.
func (s *engineScene) burn(r *rand.Rand) {
	until := time.Now().Add(time.Second)
	many(r, 8, func(*rand.Rand) {
		for n := uint64(1); time.Now().Before(until); {
			for range 1 << 16 {
				n = n*6364136223846793005 + 1442695040888963407
			}
		}
	})
}

// killEngine kills the process that serves: its supervisor starts it again, and logs it.
func (s *engineScene) killEngine(*rand.Rand) {
	eventually(s.t, "killing the engine", time.Minute, func() error {
		pid := s.pid()
		if pid == 0 {
			return errors.New("no engine runs")
		}
		return syscall.Kill(pid, syscall.SIGKILL)
	})
	eventually(s.t, "the supervisor seeing it", engineBack, func() error {
		if n := s.countDeaths(); n <= s.deaths {
			return fmt.Errorf("its log has %d deaths, as before", n)
		}
		return nil
	})
	s.deaths++
}

// killSupervisor kills the process that supervises: the engine goes with it, and both are started again.
func (s *engineScene) killSupervisor(*rand.Rand) {
	s.life.kill()
	s.startAgain()
}

// stopInOrder asks for an orderly end while statements run.
func (s *engineScene) stopInOrder(*rand.Rand) {
	if err := s.life.Signal(syscall.SIGTERM); err != nil {
		s.t.Fatal(err)
	}
	if !s.life.ended(engineBack) {
		s.t.Fatalf("the engine had not ended %v after SIGTERM\n%s", engineBack, s.words())
	}
	if code := s.life.state.ExitCode(); code != 0 {
		s.t.Errorf("asked to stop while statements ran: %v, want exit code 0\n%s", s.life.state, s.words())
	}
	s.startAgain()
}

// startAgain starts the engine once the one before has left its directory.
func (s *engineScene) startAgain() {
	eventually(s.t, "the directory being free", engineBack, func() error {
		dir, err := admin.HoldDataDir(s.dir)
		if err != nil {
			return err
		}
		return dir.Release()
	})
	s.start()
}

func (s *engineScene) start() {
	s.t.Helper()
	s.life = s.program.start(s.t, "", 0)
	s.group.Store(int64(s.life.Pid))
}

// countDeaths is how often the supervisor's log reports that the engine died.
func (s *engineScene) countDeaths() int {
	log, err := os.ReadFile(s.program.log)
	if err != nil {
		s.t.Error(err)
	}
	return strings.Count(string(log), `"engine process died"`)
}

// words is the end of the engine's log.
func (s *engineScene) words() string {
	log, err := os.ReadFile(s.program.log)
	if err != nil {
		return err.Error()
	}
	return string(log[max(0, len(log)-engineWords):])
}

// answers waits until the engine does.
func (s *engineScene) answers(after string) {
	s.t.Helper()
	eventually(s.t, "an answer after "+after, engineBack, func() error {
		if s.life.ended(0) {
			s.t.Fatalf("%s: the supervisor ended: %v\n%s", after, s.life.state, s.words())
		}
		ctx, cancel := context.WithTimeout(s.t.Context(), 30*time.Second)
		defer cancel()
		text, err := s.run(ctx, "SELECT 42", "")
		if err == nil && text != "42" {
			err = fmt.Errorf("it answers %q", text)
		}
		return err
	})
}

// look asks whether the engine answers, and fails the test where it died otherwise than by our hand.
func (s *engineScene) look(after string) {
	s.t.Helper()
	s.answers(after)
	if n := s.countDeaths(); n != s.deaths {
		s.t.Errorf("%s: the engine died by itself; with -artifacts its log and, where the system writes one, its core lie in %s\n%s",
			after, filepath.Dir(s.program.log), s.words())
		s.deaths = n
	}
}

// end compares what was acknowledged with what is there, and stops the engine in order.
func (s *engineScene) end() {
	s.t.Helper()
	s.stop()
	s.clients.Wait()
	rows, err := s.run(s.t.Context(), "SELECT count() FROM marketlog.kept FINAL WHERE id < 2199023255552", "")
	if err != nil {
		s.t.Fatal(err)
	}
	n, err := strconv.ParseInt(rows, 10, 64)
	if want := s.accepted.Load() * 100; err != nil || n < want || want == 0 {
		s.t.Errorf("of %d acknowledged rows %s are there (%v)", want, rows, err)
	}
	s.life.stop(s.t)
}
