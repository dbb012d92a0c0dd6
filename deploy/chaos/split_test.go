package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/marketlog/marketlog/deploy/chaos/oracle"
	"github.com/marketlog/marketlog/schemas"
)

const (
	// splitRoundKills is how many disturbances one cluster sees.
	splitRoundKills = 40
	// zombie is longer than a member of a group may be silent: its partitions go to others while it is stopped.
	zombie = 8 * time.Second
)

// disturbance is something that happens to a process of the split form.
type disturbance struct {
	name string
	do   func(r *splitRound, name string)
}

// disturbances are all kinds; the name of one that dies at a named step is the step's.
var disturbances = []disturbance{
	{"sink.inserted", func(r *splitRound, step string) { r.dieAt(r.processNode(), step, 6, "") }},
	{"pause process", func(r *splitRound, _ string) { r.pause(r.processNode(), zombie) }},
	{"producer.produce", func(r *splitRound, step string) { r.dieAt(produceNode, step, 600, "") }},
	{"kill engine", func(r *splitRound, _ string) { r.kill(engineNode) }},
	{"engine dies", func(r *splitRound, _ string) { r.engineDies() }},
	{"kill query", func(r *splitRound, _ string) { r.kill(r.queryNode()) }},
	{"rebalance", (*splitRound).rebalance},
	{"kill redis", func(r *splitRound, _ string) { r.cluster.redis.Restart(r.t) }},
	{"kill kafka", func(r *splitRound, _ string) { r.cluster.broker.Restart(r.t) }},
	{"fold.produce", func(r *splitRound, step string) { r.dieAt(r.processNode(), step, 500, "") }},
	{"replay.exchanged", func(r *splitRound, step string) { r.dieAt(processNodeA, step, 1, jobReplay) }},
	{"sink.insert", func(r *splitRound, step string) { r.dieAt(r.processNode(), step, 6, "") }},
	{"sink.cached", func(r *splitRound, step string) { r.dieAt(r.processNode(), step, 6, "") }},
	{"sink.recorded", func(r *splitRound, step string) { r.dieAt(r.processNode(), step, 2, "") }},
	{"replay.inserted", func(r *splitRound, step string) { r.dieAt(processNodeA, step, 1, jobReplay) }},
	{"replay.finished", func(r *splitRound, step string) { r.dieAt(processNodeA, step, 1, jobReplay) }},
	{"kill process", func(r *splitRound, _ string) { r.kill(r.processNode()) }},
	{"kill produce", func(r *splitRound, _ string) { r.kill(produceNode) }},
	{"pause produce", func(r *splitRound, _ string) { r.pause(produceNode, 3*time.Second) }},
	{"pause engine", func(r *splitRound, _ string) { r.pause(engineNode, zombie) }},
	{"pause query", func(r *splitRound, _ string) { r.pause(r.queryNode(), 3*time.Second) }},
	{"pause kafka", func(r *splitRound, _ string) {
		r.cluster.broker.Pause(r.t)
		r.wait(zombie)
		r.cluster.broker.Resume(r.t)
	}},
	{"pause redis", func(r *splitRound, _ string) {
		r.cluster.redis.Pause(r.t)
		r.wait(zombie)
		r.cluster.redis.Resume(r.t)
	}},
}

// shortDisturbances is how many the shortest run makes, each of another kind.
const shortDisturbances = 11

// splitRound is one life of a cluster.
type splitRound struct {
	*scene
	cluster *cluster
	// operator gives its commands to the first of the processes.
	operator *operator
	counts   map[string]int
	// engineDeaths is how often the engine's log has reported so far that it died.
	engineDeaths int
}

// TestKillSplitLosesNothing kills, stops and moves the roles of the split form while ticks flow.
func TestKillSplitLosesNothing(t *testing.T) {
	kills, seed := planSplit(t)
	binary := build(t)
	for round := 1; kills > 0; round++ {
		n := min(kills, splitRoundKills)
		if kills-n < shortDisturbances {
			n = kills
		}
		kills -= n
		t.Run(fmt.Sprintf("round %d", round), func(t *testing.T) { runSplitRound(t, binary, seed+uint64(round-1), n) })
	}
}

func runSplitRound(t *testing.T, binary string, seed uint64, kills int) {
	began := time.Now()
	t.Logf("seed %d, %d disturbances", seed, kills)
	ctx := t.Context()
	r := &splitRound{scene: newScene(ctx, t, seed), counts: map[string]int{}}
	r.polled = servePolled(ctx, t, seed)
	r.cluster = newCluster(t, binary, r.scene, kills < splitRoundKills, nil)
	r.operator = newOperator(t, r.cluster.nodes[processNodeA].dir, seed)
	// The producers' minute is over with their first death.
	r.put(-minutePasses)
	for name, n := range r.cluster.nodes {
		if name != processNodeC {
			n.start(t, "") // all at once: who comes first finds nothing there
		}
	}
	r.cluster.awaitReady(t)
	t.Logf("ready after %v", time.Since(began).Round(time.Millisecond))
	replicas := []*node{r.cluster.nodes[queryNodeA], r.cluster.nodes[queryNodeB]}
	key := r.cluster.key(t, replicas[0])
	var listeners []*listener
	for _, n := range replicas {
		listeners = append(listeners, listen(ctx, n.rest, key))
	}
	tail := follow(ctx, r.cluster.kafka)
	going := resume(ctx, seed, key, replicas[0].rest, replicas[1].rest)

	schedule := scheduleDisturbances(seed, kills)
	for _, d := range schedule {
		r.wait(time.Duration(r.random.Int64N(int64(time.Second))))
		r.allLive()
		start := time.Now()
		d.do(r, d.name)
		r.counts[d.name]++
		t.Logf("%s, %v", d.name, time.Since(start).Round(time.Millisecond))
	}
	t.Logf("%d disturbances after %v", kills, time.Since(began).Round(time.Second))
	r.put(0)
	r.kill(produceNode)
	r.cluster.awaitReady(t)
	r.catchUpLive()
	t.Logf("caught up after %v", time.Since(began).Round(time.Second))
	r.operator.finishAll()
	r.seeMinute()
	r.seeMinuteViews()
	r.seeEngine()

	// Without producers the log does not grow: now the views must equal it.
	r.cluster.nodes[produceNode].life.stop(t)
	r.settle()
	t.Logf("settled after %v", time.Since(began).Round(time.Second))
	result := report{Test: t.Name(), Seed: seed, Steps: r.counts, Kills: kills}
	r.checkEvents(&result)
	r.checkReceived(&result, receivedByKilled)
	published := r.checkViews(&result)
	r.checkSources(&result)
	r.operator.checkFolds(&result)
	r.operator.check()
	result.Records = r.checkAcknowledged()
	wroteAll(t, result.Records, leastRecords)
	newest := map[string]int64{}
	for at := range published {
		newest[at.coin] = max(newest[at.coin], at.second)
	}
	for i, l := range listeners {
		for coin, second := range newest {
			l.await(t, coin, second)
		}
		l.check(t, published)
		answers := replicas[i].summaries(t, key)
		for coin := range newest {
			if _, ok := answers[coin]; !ok {
				t.Errorf("%s does not answer %s, whose price was published", replicas[i].name, coin)
			}
		}
		for coin, other := range replicas[1-i].summaries(t, key) {
			if answers[coin] != other {
				t.Errorf("%s of %s: got %+v, and from the other replica %+v", coin, replicas[i].name, answers[coin], other)
			}
			if newest[coin] == 0 {
				continue // no venue trades it: the price is a source's
			}
			want := published[priceKey{coin, newest[coin]}]
			if got := answers[coin]; got.Price != want || got.Timestamp.Unix() != newest[coin] {
				t.Errorf("%s of %s: got %v at %v, and v_prices holds %v at %d", coin, replicas[i].name, got.Price, got.Timestamp, want, newest[coin])
			}
		}
	}
	for _, n := range replicas {
		n.checkSQL(t, &r.cluster.installation, key)
	}
	going.check(t, published)
	prices, err := oracle.Read(ctx, r.cluster.kafka, schemas.TopicPrices)
	if err != nil {
		t.Fatal(err)
	}
	tail.check(t, prices)
	for _, name := range []string{queryNodeA, queryNodeB, processNodeA, processNodeB, engineNode} {
		r.cluster.nodes[name].life.stop(t)
	}

	var made []step
	for _, d := range disturbances {
		made = append(made, step{name: d.name})
	}
	for _, d := range schedule {
		if r.counts[d.name] == 0 {
			t.Errorf("no %s", d.name)
		}
	}
	if kills >= splitRoundKills && result.Acked < leastAcked {
		t.Errorf("acknowledged ticks: got %d, want at least %d", result.Acked, leastAcked)
	}
	result.Seconds, result.Passed = time.Since(began).Seconds(), !t.Failed()
	result.write(t, made)
}

// scheduleDisturbances is every kind once, or where there are fewer some kinds by the seed, and then by chance.
func scheduleDisturbances(seed uint64, kills int) []disturbance {
	return drawn(scheduling(seed), disturbances, disturbances, kills)
}

// put puts the clocks of the venues, and of the next life of the producers, ahead of the machine's.
func (r *splitRound) put(ahead time.Duration) {
	r.cluster.nodes[produceNode].shift = ahead
	r.shift(ahead)
}

func (r *splitRound) processNode() string {
	return []string{processNodeA, processNodeB}[r.random.IntN(2)]
}

func (r *splitRound) queryNode() string { return []string{queryNodeA, queryNodeB}[r.random.IntN(2)] }

// living fails the test if the node has ended by itself.
func (r *splitRound) living(name string) *node {
	r.t.Helper()
	n := r.cluster.nodes[name]
	if n.life.ended(0) {
		r.t.Fatalf("%s ended by itself: %v\n%s", name, n.life.state, n.tail())
	}
	return n
}

// allLive fails the test if a node has ended by itself: others that wait for it would be blamed.
func (r *splitRound) allLive() {
	r.t.Helper()
	for name, n := range r.cluster.nodes {
		if n.life != nil {
			r.living(name)
		}
	}
	r.seeEngine()
}

// engineDies ends the process that holds the engine, and not its supervisor, as a crash of the engine's library does.
func (r *splitRound) engineDies() {
	r.t.Helper()
	n := r.living(engineNode)
	r.seeEngine()
	eventually(r.t, "the engine's process dying", time.Minute, func() error {
		content, err := os.ReadFile(filepath.Join(n.dir, "run.json"))
		if err != nil {
			return err // it has not come to serve yet
		}
		var info struct{ PID int }
		if err := json.Unmarshal(content, &info); err != nil {
			return err
		}
		if info.PID == n.life.Pid {
			return fmt.Errorf("process %d is the one that was started, and serves itself", info.PID)
		}
		if parent, err := parentOf(info.PID); err != nil || parent != n.life.Pid {
			return fmt.Errorf("process %d is of a life before: its parent is %d, %v", info.PID, parent, err) // one that was killed right now may still be ending
		}
		return syscall.Kill(info.PID, syscall.SIGKILL)
	})
	eventually(r.t, "the supervisor seeing it", time.Minute, func() error {
		if n := r.countEngineDeaths(); n != r.engineDeaths+1 {
			return fmt.Errorf("its log has %d deaths, and before of %d", n, r.engineDeaths)
		}
		return nil
	})
	r.engineDeaths++
}

// parentOf is the process that started a process.
func parentOf(pid int) (parent int, err error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	_, text, _ := strings.Cut(string(status), "\nPPid:")
	_, err = fmt.Sscan(text, &parent)
	return parent, err
}

func (r *splitRound) countEngineDeaths() int {
	r.t.Helper()
	log, err := os.ReadFile(r.cluster.nodes[engineNode].log)
	if err != nil {
		r.t.Fatal(err)
	}
	return strings.Count(string(log), "engine process died")
}

// seeEngine fails the test if the engine has died by itself. Its supervisor starts it again, so that the node lives on: the
// round goes on too, and shows whether all others survive it. Killing the node kills the supervisor, which reports nothing.
func (r *splitRound) seeEngine() {
	r.t.Helper()
	n := r.cluster.nodes[engineNode]
	if deaths := r.countEngineDeaths(); deaths > r.engineDeaths {
		r.engineDeaths = deaths
		r.t.Errorf("the engine died by itself; with -artifacts its log and, where the system writes one, its core lie in %s\n%s", filepath.Dir(n.log), n.tail())
	}
}

// kill ends a node as kill -9 does, and starts it again.
func (r *splitRound) kill(name string) {
	r.t.Helper()
	n := r.living(name)
	n.life.kill()
	n.start(r.t, "")
}

// dieAt restarts a node so that it dies at a hit of a step, which a job comes to if one is named, and
// then once more.
func (r *splitRound) dieAt(name, step string, often int, job string) {
	r.t.Helper()
	n := r.living(name)
	n.life.kill()
	fault := fmt.Sprintf("%s:%d", step, 1+r.random.IntN(often))
	n.start(r.t, fault)
	working, stop := context.WithCancel(r.t.Context())
	var work sync.WaitGroup
	defer work.Wait()
	defer stop()
	if job != "" {
		work.Go(func() { r.operator.toil(working, job) })
	}
	if !n.life.ended(insistLimit) {
		r.allLive()
		r.t.Errorf("%s was not reached by %s\n%s", fault, name, n.tail())
		n.life.kill()
	} else if !n.life.killedBySignal() {
		r.t.Fatalf("%s ended by itself: %v\n%s", name, n.life.state, n.tail())
	}
	n.start(r.t, "")
}

// pause stops a node at once.
func (r *splitRound) pause(name string, wait time.Duration) {
	r.t.Helper()
	r.living(name).life.pause(r.t, wait)
	r.living(name)
}

// rebalance lets one more process come, take partitions over, and leave.
func (r *splitRound) rebalance(string) {
	r.t.Helper()
	n := r.cluster.nodes[processNodeC]
	n.start(r.t, "")
	eventually(r.t, "a process joining", time.Minute, n.ready)
	r.wait(time.Duration(r.random.Int64N(int64(4 * time.Second))))
	n.life.stop(r.t)
	n.life = nil
}

// wait lets time pass while the processes do their work.
func (r *splitRound) wait(d time.Duration) {
	select {
	case <-time.After(d):
	case <-r.t.Context().Done():
	}
}
