package chaos

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/marketlog/marketlog/deploy/chaos/oracle"
	"github.com/marketlog/marketlog/schemas"
)

// step is a place in the code where the process can be killed, and how often it is reached in the first
// seconds of a run: the hit is drawn from 1 to often.
type step struct {
	name  string
	often int
	// job is the long work that comes to the step; empty where ticks alone do.
	job string
}

// onlyOnce is how many of the steps, the first ones, are only come to in a new directory.
const onlyOnce = 2

// Kills from outside come at a random moment of a start or a run.
const outside = "outside"

// steps are the named steps of faults.Hit, in the order in which the code comes to them.
var steps = []step{
	{"migrate.step", 3, ""}, // these first: each is made only once
	{"migrate.view", 12, ""},
	{"producer.produce", 600, ""},
	{"producer.spool", 2, ""},
	{"fold.rewind", 400, ""},
	{"fold.produce", 1000, ""},
	{"seconds.produce", 10, ""},
	{"sink.insert", 8, ""},
	{"sink.inserted", 8, ""},
	{"sink.cached", 8, ""},
	{"sink.recorded", 3, ""},
	{"replay.prepare", 1, jobReplay},
	{"replay.prepared", 1, jobReplay},
	{"replay.inserted", 6, jobReplay},
	{"replay.carried", 2, jobReplay},
	{"replay.exchange", 1, jobReplay},
	{"replay.exchanged", 2, jobReplay},
	{"replay.finished", 1, jobReplay},
	{"backfill.write", 3, jobBackfill},
	{"backfill.range", 3, jobBackfill},
	{"backfill.written", 3, jobBackfill},
	{outside, 0, ""},
}

const (
	// roundKills is how many kills one data directory sees: more would exceed what the embedded log
	// keeps, and then nobody could fold it again.
	roundKills = 50
	// leastAcked is how many acknowledged ticks a round of agedKills must have.
	leastAcked = 10_000
	// messagesPerSecond of each venue.
	messagesPerSecond = 200
	// killLimit is how long a planned kill is waited for before the process is killed from outside.
	killLimit = 15 * time.Second
	// insistLimit is the same where the first hit is meant, which must come.
	insistLimit = 90 * time.Second
	// agedKills is from how many kills on a round comes to be older than any fold remembers.
	agedKills = 50
	// begun is how far in the past a round begins: after each kill its clock is put forward by up to
	// passing, so that the log ages faster than the test does.
	begun   = 20 * time.Minute
	passing = 16 * time.Second
	// minutePasses is how far clocks are put forward so that the minute in which they stood is closed.
	minutePasses = time.Minute + schemas.AllowedLateness
	// closedWithin is how long it takes until a minute that is closed shows in all views, on a busy machine.
	closedWithin = 5 * time.Second
	// forgotten is the base of the markets that are silent for longer than a price is fresh.
	forgotten = "AVAX"
)

// leastRecords are how many acknowledged records of each topic even the shortest round has. Those of ticks go with what was said besides,
// see checkHeard; what polled sources answer goes with the round's minutes, of which each round has some.
var leastRecords = map[string]int{
	schemas.TopicTicksRaw: 500, schemas.TopicTicksRawDead: 10, schemas.TopicTicks: 500, schemas.TopicQuotes: 10, schemas.TopicPrices: 100,
	schemas.TopicCandles: 8, schemas.TopicReferenceRaw: 500, schemas.TopicCoinMarketsRaw: 500, schemas.TopicRatesRaw: 50,
	schemas.TopicMarkets: 100, schemas.TopicRates: 20, schemas.TopicDefi: 2, schemas.TopicEarn: 100, schemas.TopicBackfillRaw: 100, schemas.TopicKeys: 1, schemas.TopicUsage: 1,
}

// TestKillLosesNothing kills the whole process while ticks flow.
func TestKillLosesNothing(t *testing.T) {
	kills, seed := plan(t)
	binary := build(t)
	for round := 1; kills > 0; round++ {
		n := min(kills, roundKills)
		if kills-n < min(n, len(steps)) {
			n = kills // a last round could not come to every step
		}
		kills -= n
		t.Run(fmt.Sprintf("round %d", round), func(t *testing.T) {
			runRound(t, binary, seed+uint64(round-1), n)
		})
	}
}

type round struct {
	*scene
	in       *instance
	operator *operator
	keys     *keyring // nil: no keys are made
	// rest is notified of each start; nil: nobody asks.
	rest   *reader
	counts map[string]int
}

// start starts the process, with feeds live or none, to die at a fault, or not by itself if that is empty.
func (r *round) start(feeds, fault string) *process {
	r.t.Helper()
	if r.rest != nil {
		r.rest.starts(r.in.shift)
	}
	return r.in.start(r.t, feeds, fault)
}

func newRound(ctx context.Context, t *testing.T, binary string, seed uint64, environment ...string) *round {
	t.Helper()
	r := &round{scene: newScene(ctx, t, seed), counts: map[string]int{}}
	r.in = newInstance(t, binary, append(onlyScripted(t, binary, r.coinbase, r.kraken), environment...)...)
	r.scene.in = &r.in.installation
	r.operator = newOperator(t, r.in.dir, seed)
	r.put(-begun)
	return r
}

// put puts the clocks of the venues and of the next life ahead of the machine's. No process may run.
func (r *round) put(ahead time.Duration) {
	r.in.shift = ahead
	r.shift(ahead)
}

// passMinute puts the clocks forward by a minute, as soon as it has a price and a trade: it closes at once, and not after a real one. p
// and the life that it returns are with feeds live.
func (r *round) passMinute(p *process) *process {
	r.t.Helper()
	r.seeTrading(time.Now().Add(r.in.shift))
	p.stop(r.t)
	r.put(r.in.shift + minutePasses)
	return r.start("live", "")
}

// minuteSeen reports whether what closes with a minute comes within some seconds.
func (r *round) minuteSeen() bool {
	for deadline := time.Now().Add(closedWithin); ; time.Sleep(100 * time.Millisecond) {
		if r.minuteClosed() == nil && r.minuteViewsFilled() == nil {
			return true
		}
		if time.Now().After(deadline) {
			return false
		}
	}
}

func runRound(t *testing.T, binary string, seed uint64, kills int) {
	began := time.Now()
	t.Logf("seed %d, %d kills", seed, kills)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	sources := servePolled(ctx, t, seed)
	r := newRound(ctx, t, binary, seed, sources.settings(kills < agedKills)...)
	r.in.environment = append(r.in.environment, "MARKETLOG_ACK_RECORDS="+r.in.acks+".records")
	r.polled = sources
	r.keys = newKeyring(binary, r.in)
	r.put(-begun)
	tail := follow(ctx, r.in.kafka)
	stream := listen(ctx, r.in.rest, "")
	going := resume(ctx, seed, "", r.in.rest)
	r.rest = read(ctx, r.in.rest)

	schedule := scheduleSteps(seed, kills)
	for i := 0; i < len(schedule); i++ {
		for _, v := range r.venues() {
			v.Silence(forgotten, i > kills/4 && i < kills*3/4)
		}
		s := schedule[i]
		if !r.kill(s) && r.counts[s.name] == 0 && s.often > 1 {
			// Too little had happened for so many hits; later the first will do.
			schedule = append(schedule, step{s.name, 1, s.job})
		}
		r.put(r.in.shift + time.Duration(r.random.Int64N(int64(passing))))
	}
	t.Logf("%d kills after %v", len(schedule), time.Since(began).Round(time.Second))
	r.put(r.in.shift + minutePasses)
	p := r.start("live", "")
	r.catchUpLive()
	r.operator.finishAll()
	t.Logf("caught up after %v", time.Since(began).Round(time.Second))
	r.parade()
	// Few kills are over before there is all that a minute needs: it passes here, and another one where sources were read too late for it.
	for range 3 {
		if r.minuteSeen() {
			break
		}
		p = r.passMinute(p)
	}
	r.seeMinute()
	r.seeMinuteViews()
	p.stop(t)

	// Without feeds the log does not grow: now the views must equal it.
	p = r.start("none", "")
	r.settle()
	t.Logf("settled after %v", time.Since(began).Round(time.Second))
	result := report{Test: t.Name(), Seed: seed, Steps: r.counts}
	for _, n := range r.counts {
		result.Kills += n
	}
	r.checkEvents(&result)
	r.checkReceived(&result, receivedByKilled)
	published := r.checkViews(&result)
	r.checkBackfill()
	r.checkSources(&result)
	r.checkUsage(r.keys)
	r.keys.check(t)
	r.operator.checkFolds(&result)
	r.operator.check()
	result.Records = r.checkAcknowledged()
	wroteAll(t, result.Records, leastRecords)
	stream.check(t, published)
	going.check(t, published)
	r.rest.check(t)
	r.rest.checkPast(t)
	prices, err := oracle.Read(ctx, r.in.kafka, schemas.TopicPrices)
	if err != nil {
		t.Fatal(err)
	}
	tail.check(t, prices)
	if kills >= agedKills {
		r.checkAged()
	}
	p.stop(t)

	for _, s := range schedule {
		if r.counts[s.name] == 0 {
			t.Errorf("no kill at %s", s.name)
		}
	}
	if kills >= agedKills && result.Acked < leastAcked {
		t.Errorf("acknowledged ticks: got %d, want at least %d", result.Acked, leastAcked)
	}
	result.Seconds, result.Passed = time.Since(began).Seconds(), !t.Failed()
	result.write(t, steps)
}

// scheduleSteps is every step once, or where there are fewer kills some steps by the seed, and then by chance; migrations only in the
// beginning, where they happen.
func scheduleSteps(seed uint64, kills int) []step {
	list := drawn(scheduling(seed), steps, steps[onlyOnce:], max(kills, 1))
	place := func(s step) int {
		i := slices.IndexFunc(steps, func(other step) bool { return other.name == s.name })
		return min(i, onlyOnce)
	}
	slices.SortStableFunc(list, func(a, b step) int { return cmp.Compare(place(a), place(b)) })
	return list
}

// scheduling decides what happens in a round, and in which order: by the seed alone, whatever else draws.
func scheduling(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 3)) }

// drawn is each of the kinds once, or n of them, each with the same chance; and where n is larger, some of again by chance.
func drawn[K any](random *rand.Rand, kinds, again []K, n int) []K {
	list := slices.Clone(kinds)
	shuffle := func() { random.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] }) }
	shuffle()
	if n <= len(list) {
		return list[:n]
	}
	for len(list) < n {
		list = append(list, again[random.IntN(len(again))])
	}
	shuffle()
	return list
}

// kill starts the process and has it killed at a step, or says that the step was not reached. Meanwhile
// the work is done that comes to the step; else what an earlier kill has interrupted is taken up again.
func (r *round) kill(s step) (reached bool) {
	r.t.Helper()
	fault := ""
	if s.name != outside {
		fault = fmt.Sprintf("%s:%d", s.name, 1+r.random.IntN(s.often))
	}
	p := r.start("live", fault)
	began := time.Now()
	working, stop := context.WithCancel(r.t.Context())
	var work sync.WaitGroup
	defer work.Wait()
	defer stop()
	if r.keys != nil {
		work.Go(func() { r.keys.create(working) })
	}
	work.Go(func() {
		if s.job != "" {
			r.operator.toil(working, s.job)
		} else {
			_ = r.operator.finish(working) // it may be interrupted again
		}
	})
	if s.name == outside {
		wait := time.Duration(r.random.Int64N(int64(3 * time.Second)))
		if p.ended(wait) {
			r.t.Fatalf("the process ended by itself\n%s", r.in.tail())
		}
		p.kill()
		r.counts[outside]++
		r.t.Logf("killed from outside after %v", wait.Round(time.Millisecond))
		return true
	}
	limit := killLimit
	if s.often == 1 {
		limit = insistLimit
	}
	for time.Since(began) < limit {
		if p.ended(time.Second) {
			break
		}
		if s.name == "producer.spool" && r.coinbase.Listened() {
			// A process that slept finds its records unanswered for too long, and takes to the disk.
			p.pause(r.t, 1500*time.Millisecond)
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

// checkAged makes sure that folds began again in the middle of the log, since from its start they prove
// less, and that the silence of a coin was noticed.
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
	lost, err := rows[struct{ N int }](r.t.Context(), r.scene.in, "SELECT count() AS n FROM v_prices WHERE reason = 'no_fresh_inputs'")
	if err != nil {
		r.t.Fatal(err)
	}
	if lost[0].N == 0 {
		r.t.Error("a coin was silent for long, and its price is not lost")
	}
}
