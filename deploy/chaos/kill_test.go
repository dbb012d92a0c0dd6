package chaos

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
	"golang.org/x/sync/errgroup"

	"github.com/marketlog/marketlog/deploy/chaos/oracle"
	"github.com/marketlog/marketlog/deploy/chaos/scripted"
	"github.com/marketlog/marketlog/schemas"
)

// step is a place in the code where the process can be killed, and how often it is reached in the first
// seconds of a run: the hit is drawn from 1 to often.
type step struct {
	name  string
	often int
}

// Kills from outside come at a random moment of a start or a run.
const outside = "outside"

// steps are the named steps of faults.Hit, in the order in which the code comes to them.
var steps = []step{
	{"migrate.step", 3}, // first: each is made only once
	{"producer.produce", 4000},
	{"producer.spool", 2},
	{"fold.rewind", 2000},
	{"fold.produce", 4000},
	{"seconds.produce", 40},
	{"sink.insert", 12},
	{"sink.inserted", 12},
	{"sink.cached", 12},
	{"sink.recorded", 12},
	{outside, 0},
}

const (
	quickKills = 12
	// roundKills is how many kills one data directory sees: more would exceed what the embedded log
	// keeps, and then nobody could fold it again.
	roundKills = 50
	// leastAcked is how many acknowledged ticks a round must have.
	leastAcked = 10_000
	// messagesPerSecond of each venue.
	messagesPerSecond = 400
	// killLimit is how long a planned kill is waited for before the process is killed from outside.
	killLimit = 20 * time.Second
	// agedKills is from how many kills on a round is made to last longer than any fold remembers.
	agedKills = 50
	// memory is more log time than a fold goes back when it starts again: 180 s and what it needs to settle.
	memory = 240 * time.Second
	// forgotten is the base of the markets that are silent for longer than a price is fresh.
	forgotten = "AVAX"
)

// report is one line of MARKETLOG_KILL_REPORT.
type report struct {
	Test    string         `json:"test"`
	Seed    uint64         `json:"seed"`
	Kills   int            `json:"kills"`
	Steps   map[string]int `json:"steps"`
	Acked   int            `json:"acked"`
	Prices  int            `json:"prices"`
	Candles int            `json:"candles"`
	Seconds float64        `json:"seconds"`
	Passed  bool           `json:"passed"`
}

// TestKillLosesNothing kills the whole process while ticks flow.
func TestKillLosesNothing(t *testing.T) {
	kills, seed := plan(t)
	binary := build(t)
	for round := 1; kills > 0; round++ {
		n := min(kills, roundKills)
		if kills-n < len(steps) {
			n = kills // a last round could not come to every step
		}
		kills -= n
		t.Run(fmt.Sprintf("round %d", round), func(t *testing.T) {
			runRound(t, binary, seed+uint64(round), n)
		})
	}
}

// plan reads how often to kill, less what the report holds already, and by which seed.
func plan(t *testing.T) (kills int, seed uint64) {
	t.Helper()
	kills, seed = quickKills, uint64(time.Now().UnixNano())
	var err error
	if text := os.Getenv("MARKETLOG_KILLS"); text != "" {
		if kills, err = strconv.Atoi(text); err != nil || kills < len(steps) {
			t.Fatalf("MARKETLOG_KILLS=%q, want at least %d: every step needs one", text, len(steps))
		}
	}
	if text := os.Getenv("MARKETLOG_KILL_SEED"); text != "" {
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("MARKETLOG_KILL_SEED=%q, want a number", text)
		}
	}
	if before := done(t); before > 0 {
		t.Logf("the report holds %d kills of rounds that passed", before)
		kills = max(kills-before, len(steps))
	}
	return kills, seed
}

// done counts the kills of the rounds that passed, by the report.
func done(t *testing.T) (kills int) {
	t.Helper()
	name := os.Getenv("MARKETLOG_KILL_REPORT")
	if name == "" {
		return 0
	}
	content, err := os.ReadFile(name)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("reading the report: %v", err)
	}
	for line := range strings.Lines(string(content)) {
		var r report
		if json.Unmarshal([]byte(line), &r) == nil && r.Passed && strings.HasPrefix(r.Test, "TestKillLosesNothing/") {
			kills += r.Kills
		}
	}
	return kills
}

type round struct {
	t        *testing.T
	in       *instance
	random   *rand.Rand
	coinbase *scripted.Venue
	kraken   *scripted.Venue
	counts   map[string]int
}

func runRound(t *testing.T, binary string, seed uint64, kills int) {
	began := time.Now()
	t.Logf("seed %d, %d kills", seed, kills)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r := &round{t: t, random: rand.New(rand.NewPCG(seed, 1)), counts: map[string]int{}}
	r.openVenues(ctx, seed)
	r.in = newInstance(t, binary, r.environment(binary)...)
	tail := follow(ctx, r.in.kafka)

	schedule := r.schedule(kills)
	for i := 0; i < len(schedule); i++ {
		if kills >= agedKills && i == kills/2 {
			r.age(began)
		}
		s := schedule[i]
		if !r.kill(s) && r.counts[s.name] == 0 && s.often > 1 {
			// Too little had happened for so many hits; later the first will do.
			schedule = append(schedule, step{s.name, 1})
		}
	}
	p := r.in.start(t, "live", "")
	r.catchUpLive()
	r.parade()
	r.seeMinute()
	r.in.stop(t, p)

	// Without feeds the log stands still: now the views must equal it.
	p = r.in.start(t, "none", "")
	r.settle()
	result := report{Test: t.Name(), Seed: seed, Steps: r.counts}
	for _, n := range r.counts {
		result.Kills += n
	}
	r.checkEvents(&result)
	r.checkViews(&result)
	prices, err := oracle.Read(ctx, r.in.kafka, schemas.TopicPrices)
	if err != nil {
		t.Fatal(err)
	}
	tail.check(t, prices)
	r.in.stop(t, p)

	for _, s := range steps {
		if r.counts[s.name] == 0 {
			t.Errorf("no kill at %s", s.name)
		}
	}
	if kills >= agedKills {
		r.checkAged()
	}
	if result.Acked < leastAcked {
		t.Errorf("acknowledged ticks: got %d, want at least %d", result.Acked, leastAcked)
	}
	result.Seconds, result.Passed = time.Since(began).Seconds(), !t.Failed()
	result.write(t)
}

func (r *round) openVenues(ctx context.Context, seed uint64) {
	r.t.Helper()
	var err error
	if r.coinbase, err = scripted.NewCoinbase(seed, messagesPerSecond); err != nil {
		r.t.Fatal(err)
	}
	if r.kraken, err = scripted.NewKraken(seed+1, messagesPerSecond); err != nil {
		r.t.Fatal(err)
	}
	g, ctx := errgroup.WithContext(ctx)
	ctx, cancel := context.WithCancel(ctx)
	for _, v := range []*scripted.Venue{r.coinbase, r.kraken} {
		g.Go(func() error { return v.Run(ctx) })
	}
	r.t.Cleanup(func() {
		cancel()
		if err := g.Wait(); err != nil {
			r.t.Error(err)
		}
	})
}

// environment points the two venues here and turns everything else off that would be read live: a test
// must not reach the public.
func (r *round) environment(binary string) []string {
	r.t.Helper()
	out, err := exec.CommandContext(r.t.Context(), binary, "config", "print", "-o", "json").Output()
	if err != nil {
		r.t.Fatalf("asking the binary for its settings: %v", err)
	}
	var printed struct{ Settings []struct{ Key string } }
	if err := json.Unmarshal(out, &printed); err != nil {
		r.t.Fatalf("reading its settings: %v", err)
	}
	variable := func(key string) string { return "MARKETLOG_" + strings.ToUpper(strings.ReplaceAll(key, ".", "_")) }
	var list []string
	for _, s := range printed.Settings {
		if strings.HasSuffix(s.Key, ".enabled") && (strings.HasPrefix(s.Key, "venues.") || strings.HasPrefix(s.Key, "sources.")) {
			ours := s.Key == "venues.coinbase.enabled" || s.Key == "venues.kraken.enabled"
			list = append(list, fmt.Sprintf("%s=%t", variable(s.Key), ours))
		}
	}
	for name, v := range map[string]*scripted.Venue{"coinbase": r.coinbase, "kraken": r.kraken} {
		list = append(list, variable("venues."+name+".ws_url")+"="+v.StreamURL(), variable("venues."+name+".rest_url")+"="+v.RESTURL())
	}
	return list
}

// schedule is every step once, and then by chance; migrations only in the beginning, where they happen.
func (r *round) schedule(kills int) []step {
	list := slices.Clone(steps)
	for len(list) < kills {
		list = append(list, steps[1+r.random.IntN(len(steps)-1)])
	}
	r.random.Shuffle(len(list)-1, func(i, j int) { list[i+1], list[j+1] = list[j+1], list[i+1] })
	return list
}

// kill starts the process and has it killed at a step, or says that the step was not reached.
func (r *round) kill(s step) (reached bool) {
	r.t.Helper()
	if s.name == outside {
		p := r.in.start(r.t, "live", "")
		wait := time.Duration(r.random.Int64N(int64(6 * time.Second)))
		if p.ended(wait) {
			r.t.Fatalf("the process ended by itself\n%s", r.in.tail())
		}
		p.kill()
		r.counts[outside]++
		r.t.Logf("killed from outside after %v", wait.Round(time.Millisecond))
		return true
	}
	fault := fmt.Sprintf("%s:%d", s.name, 1+r.random.IntN(s.often))
	p := r.in.start(r.t, "live", fault)
	began := time.Now()
	for time.Since(began) < killLimit {
		if p.ended(time.Second) {
			break
		}
		if s.name == "producer.spool" && r.coinbase.Listened() {
			// A process that slept finds its records unanswered for too long, and takes to the disk.
			_ = p.Signal(syscall.SIGSTOP)
			p.ended(1500 * time.Millisecond)
			_ = p.Signal(syscall.SIGCONT)
		}
	}
	select {
	case <-p.exited:
		if !p.killedBySignal() {
			r.t.Fatalf("the process ended by itself: %v\n%s", p.state, r.in.tail())
		}
		r.counts[s.name]++
		r.t.Logf("killed at %s after %v", fault, time.Since(began).Round(time.Millisecond))
		return true
	default:
		p.kill()
		r.counts[outside]++
		r.t.Logf("%s was not reached; killed from outside after %v", fault, time.Since(began).Round(time.Millisecond))
		return false
	}
}

// age lets the process live until the log is older than what a fold reads again when it starts, with a
// coin that is silent meanwhile.
func (r *round) age(began time.Time) {
	r.t.Helper()
	for _, v := range []*scripted.Venue{r.coinbase, r.kraken} {
		v.Silence(forgotten, true)
		defer v.Silence(forgotten, false)
	}
	p := r.in.start(r.t, "live", "")
	r.t.Logf("ageing the log")
	eventually(r.t, "the price of a silent coin being lost", memory, func() error {
		lost, err := rows[struct{ N int }](r.t.Context(), r.in, "SELECT count() AS n FROM v_prices WHERE reason = 'no_fresh_inputs'")
		if err != nil {
			return err
		}
		if lost[0].N == 0 {
			return errors.New("it is not lost yet")
		}
		return nil
	})
	if p.ended(time.Until(began.Add(memory))) {
		r.t.Fatalf("the process ended by itself: %v\n%s", p.state, r.in.tail())
	}
	p.kill()
	r.counts[outside]++
}

// checkAged makes sure that folds began again in the middle of the log: from its start they prove less.
func (r *round) checkAged() {
	r.t.Helper()
	log, err := os.ReadFile(r.in.log)
	if err != nil {
		r.t.Fatal(err)
	}
	began, rewound := 0, 0
	for line := range strings.Lines(string(log)) {
		var l struct {
			Msg  string
			From map[string]int64 // by partition
		}
		if json.Unmarshal([]byte(line), &l) != nil || l.Msg != "folding" {
			continue
		}
		for _, from := range l.From {
			if began++; from > 0 {
				rewound++
			}
		}
	}
	r.t.Logf("folds began %d times, %d of them in the middle of the log", began, rewound)
	if rewound == 0 {
		r.t.Error("no fold began in the middle of the log")
	}
}

// catchUpLive waits until everything acknowledged so far is visible, while ticks go on flowing.
func (r *round) catchUpLive() {
	r.t.Helper()
	acked := r.in.acked(r.t)
	eventually(r.t, fmt.Sprintf("seeing %d acknowledged ticks", len(acked)), 2*time.Minute, func() error {
		ticks, dead, err := events(r.t.Context(), r.in)
		if err != nil {
			return err
		}
		missing := len(acked)
		seen := map[string]bool{}
		for _, e := range slices.Concat(ticks, dead) {
			if acked[e.ID] && !seen[e.ID] {
				seen[e.ID] = true
				missing--
			}
		}
		if missing > 0 {
			return fmt.Errorf("%d are missing", missing)
		}
		return nil
	})
}

// paradeSize is how often each kind of bad message is sent while nothing else is.
const paradeSize = 3

// parade sends a known number of each kind of bad message, and finds it in SQL.
func (r *round) parade() {
	r.t.Helper()
	r.coinbase.Pause(true)
	r.kraken.Pause(true)
	counts := func() map[string]int {
		list, err := rows[struct {
			Reason string
			N      int
		}](r.t.Context(), r.in, "SELECT reason, count() AS n FROM v_dead_letters WHERE source = 'coinbase' GROUP BY reason")
		if err != nil {
			r.t.Fatal(err)
		}
		byReason := map[string]int{}
		for _, row := range list {
			byReason[row.Reason] = row.N
		}
		return byReason
	}
	var before map[string]int
	still := 0
	eventually(r.t, "dead letters standing still", time.Minute, func() error {
		last := before
		if before = counts(); !maps.Equal(last, before) {
			still = 0
		}
		if still++; still < 30 { // some seconds: what was sent last may be on its way
			return errors.New("they may grow")
		}
		return nil
	})
	eventually(r.t, "a connection", time.Minute, func() error {
		if !r.coinbase.Listened() {
			return errors.New("nobody listens")
		}
		return nil
	})
	_, sent := r.coinbase.Sent()
	r.coinbase.Parade(paradeSize)
	_, after := r.coinbase.Sent()
	want := maps.Clone(before)
	for _, kind := range scripted.Bads {
		if n := after[kind] - sent[kind]; n != paradeSize {
			r.t.Fatalf("the venue sent %d of %s, want %d", n, kind, paradeSize)
		}
		if reason := kind.Reason(); reason != "" {
			want[reason] += paradeSize
		}
	}
	eventually(r.t, "counting bad messages by their reasons", 30*time.Second, func() error {
		if got := counts(); !maps.Equal(got, want) {
			return fmt.Errorf("got %v, want %v", got, want)
		}
		return nil
	})
	r.coinbase.Pause(false)
	r.kraken.Pause(false)
}

// seeMinute waits until a minute is closed in which there were prices and trades: a quick run may be
// over before.
func (r *round) seeMinute() {
	r.t.Helper()
	eventually(r.t, "a candle", 3*time.Minute, func() error {
		candles, err := rows[struct{ N int }](r.t.Context(), r.in, "SELECT count() AS n FROM v_candles_1m WHERE trades > 0")
		if err != nil {
			return err
		}
		if candles[0].N == 0 {
			return errors.New("no minute is closed yet")
		}
		return nil
	})
}

// settle waits until every processor has folded the log to its end, and every sink holds it.
func (r *round) settle() {
	r.t.Helper()
	ctx := r.t.Context()
	client := &kafka.Client{Addr: kafka.TCP(r.in.kafka)}
	folded := func(group, topic string) error {
		ends, err := oracle.Ends(ctx, r.in.kafka, topic)
		if err != nil {
			return err
		}
		var partitions []int
		for p := range ends {
			partitions = append(partitions, int(p))
		}
		committed, err := client.OffsetFetch(ctx, &kafka.OffsetFetchRequest{GroupID: group, Topics: map[string][]int{topic: partitions}})
		if err != nil {
			return err
		}
		for _, p := range committed.Topics[topic] {
			if end := ends[int32(p.Partition)]; p.CommittedOffset != end {
				return fmt.Errorf("%s stands at %d in %s/%d, want %d", group, p.CommittedOffset, topic, p.Partition, end)
			}
		}
		return nil
	}
	sunk := func(topic string) error {
		ends, err := oracle.Ends(ctx, r.in.kafka, topic)
		if err != nil {
			return err
		}
		lag, err := rows[struct {
			Partition int32 `json:"log_partition"`
			Next      int64 `json:"next_offset"`
		}](ctx, r.in, "SELECT log_partition, next_offset FROM v_lag WHERE sink = '"+topic+"'")
		if err != nil {
			return err
		}
		next := map[int32]int64{}
		for _, row := range lag {
			next[row.Partition] = row.Next
		}
		for p, end := range ends {
			if next[p] != end {
				return fmt.Errorf("the sink stands at %d in %s/%d, want %d", next[p], topic, p, end)
			}
		}
		return nil
	}
	quiet := 0
	eventually(r.t, "catching up with the log", 2*time.Minute, func() error {
		err := errors.Join(
			folded("resolve", schemas.TopicTicksRaw), folded("prices", schemas.TopicTicks),
			sunk(schemas.TopicTicks), sunk(schemas.TopicPrices), sunk(schemas.TopicCandles), sunk(schemas.TopicTicksRawDead),
		)
		if err != nil {
			quiet = 0
			return err
		}
		// What a processor has folded may still be on its way into the log.
		if quiet++; quiet < 20 {
			return errors.New("it was caught up, and may move on")
		}
		return nil
	})
}

// checkEvents asks where each event went.
func (r *round) checkEvents(result *report) {
	t := r.t
	t.Helper()
	ctx := t.Context()
	raw, err := oracle.Read(ctx, r.in.kafka, schemas.TopicTicksRaw)
	if err != nil {
		t.Fatal(err)
	}
	want, err := oracle.Events(raw)
	if err != nil {
		t.Fatal(err)
	}
	ticks, dead, err := events(ctx, r.in)
	if err != nil {
		t.Fatal(err)
	}
	var wrong []string
	found := map[string][]event{}
	rowCounts := map[string]int{}
	for _, e := range ticks {
		found[e.ID] = append(found[e.ID], e)
		rowCounts[e.rowKey()]++
		if w, ok := want[unhex(e.ID)]; !ok || w.Reason != "" || w.Coin != e.Coin {
			wrong = append(wrong, fmt.Sprintf("tick %s of %s: want coin %q, reason %q", e.ID, e.Coin, w.Coin, w.Reason))
		}
	}
	for _, e := range dead {
		found[e.ID] = append(found[e.ID], e)
		if w, ok := want[unhex(e.ID)]; !ok || w.Reason != e.Reason {
			wrong = append(wrong, fmt.Sprintf("dead letter %s for %s: want %q", e.ID, e.Reason, w.Reason))
		}
	}
	acked := r.in.acked(t)
	for id := range acked {
		if len(found[id]) != 1 {
			wrong = append(wrong, fmt.Sprintf("acknowledged event %s is there %d times: %+v", id, len(found[id]), found[id]))
		}
		if _, ok := want[unhex(id)]; !ok {
			wrong = append(wrong, fmt.Sprintf("acknowledged event %s is not in the log", id))
		}
	}
	for id, w := range want {
		if n := len(found[hex.EncodeToString([]byte(id))]); n != 1 {
			wrong = append(wrong, fmt.Sprintf("event %x of %s in the log is there %d times, want once, with reason %q", id, w.Venue, n, w.Reason))
		}
	}
	for _, w := range first(wrong) {
		t.Error(w)
	}
	result.Acked = len(acked)

	log, err := oracle.Read(ctx, r.in.kafka, schemas.TopicTicks)
	if err != nil {
		t.Fatal(err)
	}
	wantRows, err := oracle.Rows(log)
	if err != nil {
		t.Fatal(err)
	}
	if !maps.Equal(rowCounts, wantRows) {
		t.Errorf("rows of v_ticks by coin, kind and flags:\n got %v\nwant %v", rowCounts, wantRows)
	}
	quotes, err := oracle.Read(ctx, r.in.kafka, schemas.TopicQuotes)
	if err != nil {
		t.Fatal(err)
	}
	joins, err := oracle.Joined(log, quotes[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range first(joins) {
		t.Error(w)
	}
	t.Logf("%d events acknowledged; %d ticks, %d dead letters", len(acked), len(ticks), len(dead))
}

func unhex(id string) string {
	b, _ := hex.DecodeString(id) // another id than any in the log, if it is none
	return string(b)
}

// checkViews folds the log again and compares.
func (r *round) checkViews(result *report) {
	t := r.t
	t.Helper()
	log, err := oracle.Read(t.Context(), r.in.kafka, schemas.TopicTicks)
	if err != nil {
		t.Fatal(err)
	}
	want, err := oracle.Fold(log)
	if err != nil {
		t.Fatal(err)
	}
	got := views(t, r.in)
	wrong := oracle.Compare(want, got)
	for _, w := range first(wrong) {
		t.Error(w)
	}
	result.Prices, result.Candles = len(got.Prices), len(got.Candles)
	if len(wrong) == 0 && len(got.VenueCandles) > 0 {
		r.checkOracle(log, got)
	}
	reasons := map[string]int{}
	for _, p := range got.Prices {
		reasons[p.Reason]++
	}
	t.Logf("%d prices (%v), %d candles, %d candles of venues: %d differences", len(got.Prices), reasons, len(got.Candles), len(got.VenueCandles), len(wrong))
	for name, n := range map[string]int{"prices": len(got.Prices), "candles": len(got.Candles), "candles of venues": len(got.VenueCandles)} {
		if n == 0 {
			t.Errorf("there are no %s to compare", name)
		}
	}
}

// checkOracle plants faults: what finds none of these proves nothing.
func (r *round) checkOracle(log map[int32][]oracle.Record, got oracle.Views) {
	t := r.t
	t.Helper()
	planted := func(what string, log map[int32][]oracle.Record, views oracle.Views) {
		want, err := oracle.Fold(log)
		if err != nil {
			t.Fatal(err)
		}
		if len(oracle.Compare(want, views)) == 0 {
			t.Errorf("the comparison does not see %s", what)
		}
	}
	i := r.random.IntN(len(got.Prices))
	altered := got
	altered.Prices = slices.Clone(got.Prices)
	altered.Prices[i].Price = math.Nextafter(altered.Prices[i].Price, math.Inf(1))
	planted("a price that is one bit off", log, altered)
	altered.Prices = slices.Clone(got.Prices)
	altered.Prices[i].Second++
	planted("a price that is a second off", log, altered)
	altered.Prices = slices.Delete(slices.Clone(got.Prices), i, i+1)
	planted("a price that is missing", log, altered)

	shorter, what, err := oracle.Without(log, got.VenueCandles[r.random.IntN(len(got.VenueCandles))])
	if err != nil {
		t.Fatal(err)
	}
	planted("that "+what+" is missing in the log", shorter, got)
}

// write prints the kills of each step and appends the line to the report, if one is asked for.
func (r report) write(t *testing.T) {
	t.Helper()
	var list []string
	for _, s := range steps {
		list = append(list, fmt.Sprintf("%s %d", s.name, r.Steps[s.name]))
	}
	t.Logf("kills: %s; %d acknowledged ticks; %.0f s", strings.Join(list, ", "), r.Acked, r.Seconds)
	name := os.Getenv("MARKETLOG_KILL_REPORT")
	if name == "" {
		return
	}
	line, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatalf("opening the report: %v", err)
	}
	if _, err := f.Write(append(line, '\n')); err != nil {
		t.Errorf("writing the report: %v", err)
	}
	if err := f.Close(); err != nil {
		t.Errorf("writing the report: %v", err)
	}
}
