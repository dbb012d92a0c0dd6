package latest_test

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	gocmp "github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"
	"google.golang.org/protobuf/testing/protocmp"

	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream"
	"github.com/marketlog/marketlog/stream/latest"
	"github.com/marketlog/marketlog/stream/streamtest"
)

// stores runs body on every form of the cache.
func stores(t *testing.T, body func(t *testing.T, store *latest.Store)) {
	t.Run("memory", func(t *testing.T) { body(t, latest.NewMemory()) })
	servers(t, func(t *testing.T, client redis.UniversalClient) { body(t, latest.New(client)) })
}

// servers runs body on every form of Redis.
func servers(t *testing.T, body func(t *testing.T, client redis.UniversalClient)) {
	t.Run("miniredis", func(t *testing.T) { body(t, connect(t, miniredis.RunT(t).Addr())) })
	t.Run("redis", func(t *testing.T) { body(t, connect(t, streamtest.Redis(t))) })
	t.Run("cluster", func(t *testing.T) { body(t, connect(t, startCluster(t)...)) })
}

func connect(t *testing.T, addrs ...string) redis.UniversalClient {
	t.Helper()
	client := redis.NewUniversalClient(&redis.UniversalOptions{Addrs: addrs, ContextTimeoutEnabled: true})
	t.Cleanup(func() { client.Close() })
	return client
}

// startCluster starts three nodes that share the slots and returns their addresses.
func startCluster(t *testing.T) (addrs []string) {
	t.Helper()
	streamtest.InTier(t, streamtest.TierRedis)
	program, err := exec.LookPath("redis-server")
	if err != nil {
		streamtest.Missing(t, streamtest.TierRedis, "no redis-server on PATH")
	}
	const nodes = 3
	var meet []any
	for i := range nodes {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		host, port, _ := net.SplitHostPort(listener.Addr().String())
		// The nodes' bus has a port of its own, 10,000 above by default, which may not exist.
		bus, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		_, busPort, _ := net.SplitHostPort(bus.Addr().String())
		listener.Close()
		bus.Close()
		server := exec.Command(program, "--bind", host, "--port", port, "--dir", t.TempDir(), "--save", "",
			"--cluster-enabled", "yes", "--cluster-port", busPort, "--cluster-require-full-coverage", "yes")
		if err := server.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			server.Process.Kill()
			_ = server.Wait() // it was killed
		})
		addr := net.JoinHostPort(host, port)
		node := redis.NewClient(&redis.Options{Addr: addr})
		defer node.Close()
		eventually(t, func() error { return node.Ping(t.Context()).Err() })
		if err := node.ClusterAddSlotsRange(t.Context(), i*16384/nodes, (i+1)*16384/nodes-1).Err(); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			meet = []any{"CLUSTER", "MEET", host, port, busPort}
		} else if err := node.Do(t.Context(), meet...).Err(); err != nil {
			t.Fatal(err)
		}
		addrs = append(addrs, addr)
	}
	for _, addr := range addrs {
		node := redis.NewClient(&redis.Options{Addr: addr})
		defer node.Close()
		eventually(t, func() error {
			state, err := node.ClusterInfo(t.Context()).Result()
			if err == nil && !(strings.Contains(state, "cluster_state:ok") && strings.Contains(state, fmt.Sprintf("cluster_known_nodes:%d", nodes))) {
				err = errors.New(state)
			}
			return err
		})
	}
	return addrs
}

func eventually(t *testing.T, try func() error) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for {
		err := try()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func record(partition int32, offset int64, coin string, second int64, reason string) latest.Record {
	price := &eventsv1.Price{CoinId: coin, Time: second * 1e9, Reason: reason}
	if reason == "" {
		price.Price = float64(offset) + 0.1
		price.Inputs = []*eventsv1.PriceInput{{Provider: "kraken", Symbol: "a\x00\xff\n"}}
	}
	return latest.Record{Partition: partition, Offset: offset, Mark: &eventsv1.Mark{LogicVersion: 1, Partition: partition, Offset: offset * 2}, Price: price}
}

func put(t *testing.T, store *latest.Store, generation uint32, covered map[int32]latest.Range, records ...latest.Record) []int32 {
	t.Helper()
	gaps, err := store.Put(t.Context(), generation, records, covered)
	if err != nil {
		t.Fatal(err)
	}
	return gaps
}

func byCoin(a, b latest.Record) int {
	return cmp.Or(cmp.Compare(a.Price.CoinId, b.Price.CoinId), cmp.Compare(a.Price.Time, b.Price.Time))
}

func check(t *testing.T, store *latest.Store, next map[int32]int64, want ...latest.Record) {
	t.Helper()
	got, err := store.Load(t.Context(), 8)
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(got.Records, byCoin)
	if diff := gocmp.Diff(latest.Snapshot{Records: want, Next: next}, got, protocmp.Transform()); diff != "" {
		t.Fatalf("want(-), got(+):\n%s", diff)
	}
}

func TestWhatWasPutIsLoaded(t *testing.T) {
	stores(t, func(t *testing.T, store *latest.Store) {
		check(t, store, map[int32]int64{})
		// Of several records of a coin the last counts; offsets are beyond what a double holds exactly.
		const far = int64(1)<<53 + 1
		ada, btc, gone, xrp := record(1, 7, "ada", 5, ""), record(6, far+1, "btc", 6, ""), record(6, far+2, "btc", 8, "no_fresh_inputs"), record(6, 9, "xrp", 9, "no_consensus")
		put(t, store, 0, map[int32]latest.Range{1: {Next: 8}, 6: {Next: far + 3}},
			record(1, 3, "ada", 4, ""), ada, record(6, far, "btc", 5, ""), btc, xrp, gone)
		check(t, store, map[int32]int64{1: 8, 6: far + 3}, ada, btc, gone, xrp)
		// A price after the reason: there is no reason any more.
		back := record(6, far+5, "btc", 10, "")
		put(t, store, 0, map[int32]latest.Range{6: {From: far + 3, Next: far + 6}}, back)
		check(t, store, map[int32]int64{1: 8, 6: far + 6}, ada, back, xrp)
	})
}

func TestValuesNeverGoBack(t *testing.T) {
	stores(t, func(t *testing.T, store *latest.Store) {
		newer, older := record(2, 100, "btc", 100, ""), record(2, 99, "btc", 99, "")
		whole, part := map[int32]latest.Range{2: {Next: 101}}, map[int32]latest.Range{2: {Next: 100}}
		put(t, store, 1, whole, newer)
		put(t, store, 1, part, older)
		check(t, store, map[int32]int64{2: 101}, newer)
		put(t, store, 0, map[int32]latest.Range{2: {Next: 5001}}, record(2, 5000, "btc", 5000, ""))
		check(t, store, map[int32]int64{2: 101}, newer)
		// A later generation counts, whatever its offsets.
		put(t, store, 10, part, older)
		check(t, store, map[int32]int64{2: 100}, older)
		put(t, store, 9, whole, newer)
		check(t, store, map[int32]int64{2: 100}, older)
	})
}

func TestHoleIsReportedUntilItIsFilled(t *testing.T) {
	servers(t, func(t *testing.T, client redis.UniversalClient) {
		store := latest.New(client)
		ada, btc := record(3, 1, "ada", 1, ""), record(3, 12, "btc", 12, "")
		put(t, store, 0, map[int32]latest.Range{3: {Next: 10}, 4: {Next: 5}}, ada)
		for p := range int32(8) {
			if err := client.Del(t.Context(), fmt.Sprintf("marketlog:prices:{%d}", p)).Err(); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 {
			gaps := put(t, store, 0, map[int32]latest.Range{3: {From: 10, Next: 13}, 4: {From: 5, Next: 6}}, btc)
			if !slices.Equal(gaps, []int32{3, 4}) {
				t.Fatalf("after a flush: got holes %v, want 3 and 4", gaps)
			}
			check(t, store, map[int32]int64{}, btc)
		}
		// What fills the gap comes from history, where the newer value of btc may be missing.
		refilled := record(3, 0, "ada", 1, "")
		if gaps := put(t, store, 0, map[int32]latest.Range{3: {Next: 13}}, refilled, record(3, 0, "btc", 11, "")); gaps != nil {
			t.Fatalf("filled: got holes %v", gaps)
		}
		check(t, store, map[int32]int64{3: 13}, refilled, btc)
		if gaps := put(t, store, 0, map[int32]latest.Range{3: {From: 13, Next: 20}}); gaps != nil {
			t.Fatalf("after filling: got holes %v", gaps)
		}
		// A stretch put twice, or overlapping, leaves no gap; one that begins too late does.
		if gaps := put(t, store, 0, map[int32]latest.Range{3: {From: 15, Next: 21}}); gaps != nil {
			t.Fatalf("overlapping: got holes %v", gaps)
		}
		if gaps := put(t, store, 0, map[int32]latest.Range{3: {From: 22, Next: 23}}); !slices.Equal(gaps, []int32{3}) {
			t.Fatalf("too late: got holes %v, want 3", gaps)
		}
		check(t, store, map[int32]int64{3: 21}, refilled, btc)
	})
}

// Scripts are sent once and called by their hash; a server that forgot them is sent them again.
func TestForgottenScriptIsSentAgain(t *testing.T) {
	servers(t, func(t *testing.T, client redis.UniversalClient) {
		store := latest.New(client)
		for i := range int64(3) {
			put(t, store, 0, map[int32]latest.Range{1: {From: i, Next: i + 1}}, record(1, i, "ada", i, ""))
			if err := client.ScriptFlush(t.Context()).Err(); err != nil {
				t.Fatal(err)
			}
		}
		check(t, store, map[int32]int64{1: 3}, record(1, 2, "ada", 2, ""))
	})
}

func TestCacheAwayIsUnavailable(t *testing.T) {
	server := streamtest.StartRedis(t)
	store := latest.New(connect(t, server.Addr()))
	server.Kill()
	if _, err := store.Put(t.Context(), 0, nil, map[int32]latest.Range{1: {Next: 1}}); !errors.Is(err, stream.ErrUnavailable) {
		t.Errorf("put: got %v, want %v", err, stream.ErrUnavailable)
	}
	if _, err := store.Load(t.Context(), 8); !errors.Is(err, stream.ErrUnavailable) {
		t.Errorf("load: got %v, want %v", err, stream.ErrUnavailable)
	}
	server.Restart(t)
	put(t, store, 0, map[int32]latest.Range{1: {Next: 1}})
	check(t, store, map[int32]int64{1: 1})
}

// A process's own memory follows the rules of the script in Redis, whatever is put in whichever order.
func TestMemoryKeepsWhatRedisKeeps(t *testing.T) {
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	memory, server := latest.NewMemory(), latest.New(connect(t, miniredis.RunT(t).Addr()))
	for step := range 300 {
		generation, covered := uint32(random.IntN(3)), map[int32]latest.Range{}
		var records []latest.Record
		for p := range int32(2) {
			from := int64(random.IntN(4) * random.IntN(20))
			covered[p] = latest.Range{From: from, Next: from + 1 + int64(random.IntN(6))}
			for offset := covered[p].From; offset < covered[p].Next; offset++ {
				reason := []string{"", "no_consensus"}[random.IntN(2)]
				records = append(records, record(p, offset, fmt.Sprint([]string{"ada", "btc"}[random.IntN(2)], p), int64(step), reason))
			}
		}
		got, want := put(t, memory, generation, covered, records...), put(t, server, generation, covered, records...)
		if !slices.Equal(got, want) {
			t.Fatalf("seed %d, step %d: holes %v in memory, %v in Redis", seed, step, got, want)
		}
		loaded, err := server.Load(t.Context(), 2)
		if err != nil {
			t.Fatal(err)
		}
		slices.SortFunc(loaded.Records, byCoin)
		check(t, memory, loaded.Next, loaded.Records...)
	}
}
