package ws

import (
	"bytes"
	"compress/flate"
	"encoding/json"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/limits"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// follower checks what every reader is promised: per coin time never goes back, each previous price
// is the one that the reader was last reported, and numbers never go back.
type follower struct {
	name   string
	last   map[string]element
	seq    uint64
	seen   map[string]int
	merge  int
	faults []string
}

func newFollower(name string) *follower {
	return &follower{name: name, last: map[string]element{}, seen: map[string]int{}}
}

func (f *follower) take(r received) {
	fault := func(what string, e element) {
		text, _ := json.Marshal(e)
		f.faults = append(f.faults, f.name+": "+what+": "+string(text))
	}
	if r.Seq < f.seq {
		fault("the number went back", element{})
	}
	f.seq = r.Seq
	f.merge = max(f.merge, r.Conflated)
	if r.Type != typeUpdate && r.Type != typeInitial {
		return
	}
	for _, e := range r.Data {
		before, known := f.last[e.CoinID]
		if known && e.Timestamp < before.Timestamp {
			fault("time went back", e)
		}
		if r.Type == typeUpdate {
			f.seen[e.CoinID]++
			if want := before.Price; known && e.PreviousPrice != want {
				fault("another previous price than it received", e)
			}
			if !known && e.PreviousPrice != e.Price {
				fault("a first price with a previous one", e)
			}
		}
		f.last[e.CoinID] = e
	}
}

// market moves some of the coins and says how often each changed.
type market struct {
	w       *fixture
	rng     *rand.Rand
	coins   []schemas.Coin
	prices  map[string]float64
	changes map[string]int
}

func newMarket(w *fixture, seed uint64, coins int) *market {
	m := &market{w: w, rng: rand.New(rand.NewPCG(seed, 1)), coins: w.priceCache.Coins().All()[:coins],
		prices: map[string]float64{}, changes: map[string]int{}}
	for _, c := range m.coins {
		m.move(c)
	}
	w.tick()
	clear(m.changes)
	return m
}

func (m *market) move(c schemas.Coin) {
	m.prices[c.ID] = 1 + m.rng.Float64()*1000
	m.changes[c.ID]++
	m.w.price(&eventsv1.Price{CoinId: c.ID, Price: m.prices[c.ID], Source: "kraken", Volume24H: m.rng.Float64() * 1e9})
}

func (m *market) second(share float64) {
	for _, c := range m.coins {
		if m.rng.Float64() < share {
			m.move(c)
		}
	}
	m.w.tick()
}

func TestEveryReaderReceivesEveryChangeAtItsOwnPace(t *testing.T) {
	for seed := range uint64(2) {
		const seconds = 40
		w := newFixture(t, func(s *setup) { s.stream.WriteTimeout = patience })
		m := newMarket(w, seed, 400) // a snapshot of them has more than 64 kB
		key := w.key(limits.PlanPro)
		type reader struct {
			*follower
			c    *client
			want map[string]bool
			id   string
		}
		readers := []*reader{
			{newFollower("all"), w.open(dialing{key: key}), nil, ""},
			{newFollower("uncompressed"), w.open(dialing{key: key, uncompressed: true}), nil, ""},
			{newFollower("some"), w.open(dialing{key: key}), map[string]bool{"bitcoin": true, "ethereum": true}, ""},
			{newFollower("every 7 s"), w.open(dialing{key: key}), nil, ""},
			{newFollower("stalled"), w.open(dialing{key: key, uncompressed: true, readBuffer: 32 << 10}), nil, ""},
		}
		for i, r := range readers {
			welcome := r.c.until("welcome")
			r.id = welcome.ClientID
			r.take(welcome)
			r.take(r.c.until(typeInitial))
			switch i {
			case 2:
				r.c.send(`{"type":"subscribe","symbols":["BTC","eth"]}`)
				r.take(r.c.until("subscribed"))
			case 3:
				r.c.send(`{"type":"subscribe","intervalMs":7000}`)
				r.take(r.c.until("subscribed"))
			}
		}
		var reading sync.WaitGroup
		// Prices of the last second end each reading: after them nothing changes.
		read := func(r *reader) {
			reading.Go(func() {
				for {
					text, err := r.c.next()
					if err != nil {
						t.Errorf("seed %d: %s: %v", seed, r.name, err)
						return
					}
					var f received
					if err := json.Unmarshal([]byte(text), &f); err != nil {
						t.Errorf("seed %d: %s: %v in %s", seed, r.name, err, text)
						return
					}
					r.take(f)
					if e, ok := r.last["bitcoin"]; ok && e.Timestamp/1000 >= w.now.Load()-1 && e.Source == "last" {
						return
					}
				}
			})
		}
		for _, r := range readers[:4] {
			read(r)
		}
		for range seconds {
			m.second(0.6)
			w.eventually("those who read have what there is", func() bool { return w.written(readers[4].id) })
		}
		w.now.Add(10) // so that every interval has passed
		for _, c := range m.coins {
			m.prices[c.ID]++
			m.changes[c.ID]++
			w.price(&eventsv1.Price{CoinId: c.ID, Price: m.prices[c.ID], Source: "last"})
		}
		w.tick()
		read(readers[4])
		reading.Wait()
		for _, r := range readers {
			for _, fault := range r.faults {
				t.Errorf("seed %d: %s", seed, fault)
			}
			for id, price := range m.prices {
				coin, _ := w.priceCache.Coins().ByID(id)
				if r.want != nil && !r.want[id] || !w.priceCache.Leads(coin) {
					if r.want != nil && r.seen[id] > 0 {
						t.Errorf("seed %d: %s received %s, which it did not ask for", seed, r.name, id)
					}
					continue
				}
				if r.last[id].Price != price {
					t.Errorf("seed %d: %s ends with %s at %g, want %g", seed, r.name, id, r.last[id].Price, price)
				}
				if r.name != "stalled" && r.name != "every 7 s" && r.seen[id] != m.changes[id] {
					t.Errorf("seed %d: %s received %d changes of %s, want %d", seed, r.name, r.seen[id], id, m.changes[id])
				}
			}
			if stalled := r.name == "stalled"; stalled != (r.merge > 1) {
				t.Errorf("seed %d: %s got a frame that merges %d", seed, r.name, r.merge)
			}
		}
	}
}

func TestReadersThatComeAndGoHarmNoOther(t *testing.T) {
	w := newFixture(t, func(s *setup) {
		enterprise := s.plans[limits.PlanEnterprise]
		enterprise.PerMinute = 0
		s.plans[limits.PlanEnterprise] = enterprise
	})
	m := newMarket(w, 1, 300)
	key := w.key(limits.PlanEnterprise)
	stays, steady := w.open(dialing{key: key}), newFollower("stays")
	steady.take(stays.until(typeInitial))
	var reading, coming sync.WaitGroup
	over := make(chan struct{})
	for i := range 6 {
		coming.Go(func() {
			for n := i; ; n++ {
				select {
				case <-over:
					return
				default:
				}
				c, _, err := w.dial(dialing{key: key, uncompressed: n%2 == 0, readBuffer: 4096 * (n % 3)})
				if err != nil {
					t.Errorf("dialling: %v", err)
					return
				}
				for range min(n%4, 2) { // a welcome and a snapshot come by themselves
					if _, err := c.next(); err != nil {
						t.Errorf("reading before leaving: %v", err)
					}
				}
				if n%3 > 0 {
					_ = c.CloseNow() // without a word
				} else if err := c.Close(websocket.StatusNormalClosure, ""); err != nil {
					t.Errorf("closing a socket of which %d frames were read: %v", min(n%4, 2), err)
				}
			}
		})
	}
	const seconds = 60
	reading.Go(func() {
		for steady.last["bitcoin"].Source != "last" {
			steady.take(stays.frame())
		}
	})
	for range seconds {
		m.second(0.5)
	}
	w.price(&eventsv1.Price{CoinId: "bitcoin", Price: 1, Source: "last"})
	w.tick()
	reading.Wait()
	close(over)
	coming.Wait()
	for _, fault := range steady.faults {
		t.Error(fault)
	}
	for _, c := range m.coins {
		if c.ID != "bitcoin" && w.priceCache.Leads(c) && steady.seen[c.ID] != m.changes[c.ID] && steady.merge < 2 {
			t.Errorf("received %d changes of %s, want %d", steady.seen[c.ID], c.ID, m.changes[c.ID])
		}
	}
	stays.CloseNow()
	w.eventually("nothing is held for those who left", func() bool {
		w.hub.mu.Lock()
		defer w.hub.mu.Unlock()
		return len(w.hub.subs)+len(w.hub.sockets)+len(w.hub.budgets) == 0 && w.hub.connections.Load() == 0
	})
}

func TestTheQueueOfOneWhoIsAlwaysBehindDoesNotGrow(t *testing.T) {
	s := newSubscriber(&admission{}, nil, 1)
	r := &round{frames: []frame{{shared: encode([]byte("{}"))}}}
	s.offer(r, nil)
	for n := range 1000 {
		s.offer(r, nil)
		if wire, _ := s.take(); len(wire) == 0 || s.waiting() != 1 {
			t.Fatalf("round %d: took %d bytes, and %d frames wait, want 1", n, len(wire), s.waiting())
		}
	}
	if most := 4 * queueFrames; cap(s.queue) > most {
		t.Errorf("the queue has grown to %d places, want at most %d", cap(s.queue), most)
	}
}

func TestTheKeyComesInThreeWays(t *testing.T) {
	w := newFixture(t, func(s *setup) { s.stream.Origins = []string{"https://app.example"} })
	good := w.key(limits.PlanPro)
	for _, c := range []struct {
		name string
		d    dialing
		auth string
		code websocket.StatusCode // 0 for a welcome
		why  string
	}{
		{"header", dialing{key: good}, "", 0, ""},
		{"subprotocol", dialing{protocols: []string{protocol, keyPrefix + good}}, "", 0, ""},
		{"first frame", dialing{}, `{"type":"auth","key":"` + good + `"}`, 0, ""},
		{"bad header", dialing{key: good + "x"}, "", closeKey, "this API key is not known here: it may be mistyped, expired, revoked or of another instance"},
		{"bad subprotocol", dialing{protocols: []string{protocol, keyPrefix + "ck_live_x"}}, "", closeKey, "this API key is not known here: it may be mistyped, expired, revoked or of another instance"},
		{"bad first frame", dialing{}, `{"type":"auth","key":"ck_live_x"}`, closeKey, "this API key is not known here: it may be mistyped, expired, revoked or of another instance"},
		{"another first frame", dialing{}, `{"type":"ping"}`, closeKey, "the first message must be"},
		{"own origin", dialing{key: good, origin: "http://" + w.base}, "", 0, ""},
		{"configured origin", dialing{key: good, origin: "https://app.example"}, "", 0, ""},
		{"other origin", dialing{key: good, origin: "https://elsewhere.example"}, "", closeOrigin, ""},
		{"the same host by another scheme than configured", dialing{key: good, origin: "http://app.example"}, "", closeOrigin, ""},
		{"an origin without a name", dialing{key: good, origin: "null"}, "", closeOrigin, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			client, answer, err := w.dial(c.d)
			if err != nil {
				t.Fatal(err)
			}
			if echoed := answer.Header.Get("Sec-WebSocket-Protocol"); strings.Contains(echoed, "ck_live") || len(c.d.protocols) > 0 && echoed != protocol {
				t.Errorf("echoed the subprotocol %q", echoed)
			}
			if c.auth != "" {
				client.send(c.auth)
			}
			if c.code != 0 {
				if code, why := client.ending(); code != c.code || !strings.Contains(why, c.why) {
					t.Errorf("closed with %d, %q, want %d, %q", code, why, c.code, c.why)
				}
				return
			}
			if f := client.frame(); f.Type != "welcome" {
				t.Errorf("greeted with %q", f.Type)
			}
		})
	}
}

func TestAClientThatSendsNoKeyIsClosed(t *testing.T) {
	w := newFixture(t, func(s *setup) { s.stream.KeyTimeout = 50 * time.Millisecond })
	if code, why := w.open(dialing{}).ending(); code != closeKey || !strings.Contains(why, "no API key was received") {
		t.Errorf("closed with %d, %q, want %d and that no key was received", code, why, closeKey)
	}
}

func TestHandshakesCountAndSocketsAreLimited(t *testing.T) {
	w := newFixture(t, nil)
	free := w.key(limits.PlanFree)
	first := w.open(dialing{key: free})
	first.until("welcome")
	if code := w.open(dialing{key: free}).closed(); code != closeSockets {
		t.Errorf("a second socket of a plan with one is closed with %d, want %d", code, closeSockets)
	}
	plan := limits.DefaultPlans()[limits.PlanFree]
	if left := w.limiter.Peek(free[len(free)-8:], &plan, limits.Plain, time.Now()).Remaining; left != 29 {
		t.Errorf("%d of 30 requests are left after one handshake and a refused one, want 29", left)
	}
	if err := first.Close(websocket.StatusNormalClosure, ""); err != nil {
		t.Fatal(err)
	}
	w.eventually("the place is free again", func() bool { return w.sockets() == 0 })
	second, answer, err := w.dial(dialing{key: free})
	if err != nil {
		t.Fatal(err)
	}
	if second.until("welcome"); answer.Header.Get("X-RateLimit-Remaining") != "28" {
		t.Errorf("the handshake says that %q are left, want 28", answer.Header.Get("X-RateLimit-Remaining"))
	}
	second.CloseNow()
	w.eventually("the place is free again", func() bool { return w.sockets() == 0 })
	for range 28 {
		if !w.limiter.Admit(free[len(free)-8:], &plan, limits.Plain, time.Now()).OK {
			t.Fatal("refused too early")
		}
	}
	if _, answer, err = w.dial(dialing{key: free}); err == nil || answer.StatusCode != http.StatusTooManyRequests {
		t.Errorf("a handshake beyond the limit: %v, %v", answer, err)
	}
}

// written means that nothing waits to be written to anyone but one.
func (w *fixture) written(except string) bool {
	w.hub.mu.Lock()
	defer w.hub.mu.Unlock()
	for _, s := range w.hub.subs {
		s.mu.Lock()
		waits := s.writing || s.waiting() > 0 || s.pending != nil && s.pending.due
		s.mu.Unlock()
		if waits && s.id != except {
			return false
		}
	}
	return true
}

func (w *fixture) sockets() int {
	w.hub.mu.Lock()
	defer w.hub.mu.Unlock()
	return len(w.hub.sockets) + len(w.hub.budgets)
}

func TestEachHubHasAnEpochOfItsOwn(t *testing.T) {
	epochs := map[string]bool{}
	for range 2 {
		w := newFixture(t, nil)
		m := newMarket(w, 1, 3)
		c := w.open(dialing{key: w.key(limits.PlanPro)})
		welcome := c.frame()
		if welcome.Epoch == "" || epochs[welcome.Epoch] {
			t.Errorf("a new hub's epoch is %q, after %v", welcome.Epoch, epochs)
		}
		epochs[welcome.Epoch] = true
		m.second(1)
		for _, kind := range []string{typeInitial, typeUpdate} {
			if f := c.frame(); f.Type != kind || f.Epoch != welcome.Epoch {
				t.Errorf("got %s of epoch %q, want %s of %q", f.Type, f.Epoch, kind, welcome.Epoch)
			}
		}
	}
}

func TestPlainRequestsAreAskedToUpgrade(t *testing.T) {
	w := newFixture(t, nil)
	answer, err := http.Get("http://" + w.base + Path)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if text := body(t, answer); answer.StatusCode != http.StatusUpgradeRequired || !strings.Contains(text, query.CodeUpgrade) || answer.Header.Get("Upgrade") != "websocket" || answer.Header.Get("Sec-WebSocket-Version") != "13" {
		t.Errorf("answered %d %v %s", answer.StatusCode, answer.Header, text)
	}
	request, err := http.NewRequest(http.MethodGet, "http://"+w.base+Path, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header = http.Header{"Connection": {"Upgrade"}, "Upgrade": {"websocket"}, "Sec-Websocket-Version": {"12"}, "Sec-Websocket-Key": {"x"}}
	answer, err = http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if text := body(t, answer); answer.StatusCode != http.StatusUpgradeRequired {
		t.Errorf("another version is answered %d %s", answer.StatusCode, text)
	}
	if w.hub.connections.Load() != 0 {
		t.Errorf("%d connections are counted after refused ones", w.hub.connections.Load())
	}
}

func TestARevokedKeyEndsItsSockets(t *testing.T) {
	w := newFixture(t, nil)
	good, bad := w.key(limits.PlanPro), w.key(limits.PlanPro)
	kept, ended := w.open(dialing{key: good}), w.open(dialing{key: bad})
	kept.until(typeInitial)
	ended.until(typeInitial)
	w.revoke(bad)
	if code := ended.closed(); code != closeKey {
		t.Errorf("closed with %d, want %d", code, closeKey)
	}
	kept.send(`{"type":"ping"}`)
	kept.until("pong")
}

func TestDrainingSendsEveryoneAway(t *testing.T) {
	w := newFixture(t, nil)
	c := w.open(dialing{key: w.key(limits.PlanPro)})
	waiting := w.open(dialing{}) // has sent no key yet
	c.until(typeInitial)
	var code websocket.StatusCode
	var reading sync.WaitGroup
	reading.Go(func() { code = c.closed() })
	reading.Go(func() { _, _ = waiting.next() })
	if err := w.stop(); err != nil {
		t.Fatal(err)
	}
	if reading.Wait(); code != websocket.StatusServiceRestart {
		t.Errorf("closed with %d, want %d", code, websocket.StatusServiceRestart)
	}
}

func TestAStalledReaderIsClosedWithTheReason(t *testing.T) {
	w := newFixture(t, func(s *setup) { s.stream.WriteTimeout, s.stream.Linger = 300*time.Millisecond, patience })
	m := newMarket(w, 1, 300)
	c := w.open(dialing{key: w.key(limits.PlanPro), uncompressed: true, readBuffer: 4096})
	c.until("welcome")
	w.eventually("it is seen to stall", func() bool {
		m.second(1)
		w.hub.mu.Lock()
		defer w.hub.mu.Unlock()
		for _, s := range w.hub.subs {
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.pending != nil && s.pending.updates > 3
		}
		return false
	})
	timer := time.NewTimer(2 * w.hub.cfg.WriteTimeout)
	<-timer.C // the deadline is one of the real clock
	if code := c.closed(); code != closeSlow {
		t.Errorf("closed with %d, want %d", code, closeSlow)
	}
}

func TestAReaderThatNeverReadsAgainIsCutOff(t *testing.T) {
	w := newFixture(t, func(s *setup) { s.stream.WriteTimeout, s.stream.Linger = 50*time.Millisecond, 50*time.Millisecond })
	m := newMarket(w, 1, 300)
	w.open(dialing{key: w.key(limits.PlanPro), uncompressed: true, readBuffer: 4096}).until("welcome")
	w.eventually("it is cut off", func() bool { m.second(1); return w.sockets() == 0 })
}

// Three hundred that never read take nothing from one that does, and are cut off.
func TestThreeHundredThatNeverReadDelayNobody(t *testing.T) {
	const silent, seconds = 300, 30
	w := newFixture(t, func(s *setup) {
		s.stream.WriteTimeout, s.stream.Linger = 50*time.Millisecond, 50*time.Millisecond
		enterprise := s.plans[limits.PlanEnterprise]
		enterprise.PerMinute, enterprise.Sockets = 0, silent+1
		s.plans[limits.PlanEnterprise] = enterprise
	})
	m := newMarket(w, 1, 300)
	key := w.key(limits.PlanEnterprise)
	reads, steady := w.open(dialing{key: key}), newFollower("reads")
	steady.take(reads.until(typeInitial))
	for range silent {
		w.open(dialing{key: key, uncompressed: true, readBuffer: 4096})
	}
	var reading sync.WaitGroup
	reading.Go(func() {
		for steady.last["bitcoin"].Source != "last" {
			steady.take(reads.frame())
		}
	})
	for range seconds {
		m.second(0.5)
	}
	w.price(&eventsv1.Price{CoinId: "bitcoin", Price: 1, Source: "last"})
	w.tick()
	reading.Wait()
	for _, fault := range steady.faults {
		t.Error(fault)
	}
	for _, c := range m.coins {
		if c.ID != "bitcoin" && w.priceCache.Leads(c) && steady.seen[c.ID] != m.changes[c.ID] && steady.merge < 2 {
			t.Errorf("received %d changes of %s, want %d", steady.seen[c.ID], c.ID, m.changes[c.ID])
		}
	}
	reads.CloseNow()
	w.eventually("all are cut off", func() bool { m.second(1); return w.sockets() == 0 })
}

func TestWhatClientsSendIsBounded(t *testing.T) {
	w := newFixture(t, func(s *setup) { s.stream.Idle = time.Hour })
	key := w.key(limits.PlanPro)
	for _, c := range []struct {
		name string
		send func(*client)
		code websocket.StatusCode
	}{
		{"a large message", func(c *client) { c.send(strings.Repeat("x", messageMax+1)) }, websocket.StatusMessageTooBig},
		{"many messages", func(c *client) {
			for range messagesBurst + 10 {
				if c.Write(t.Context(), websocket.MessageText, []byte(`{"type":"ping"}`)) != nil {
					return
				}
			}
		}, websocket.StatusPolicyViolation},
		{"a binary message", func(c *client) {
			if err := c.Write(t.Context(), websocket.MessageBinary, []byte("{}")); err != nil {
				t.Error(err)
			}
		}, websocket.StatusUnsupportedData},
	} {
		t.Run(c.name, func(t *testing.T) {
			client := w.open(dialing{key: key, uncompressed: true})
			client.until(typeInitial)
			c.send(client)
			if code := client.closed(); code != c.code {
				t.Errorf("closed with %d, want %d", code, c.code)
			}
		})
	}
}

func TestASmallMessageThatInflatesIsRefused(t *testing.T) {
	w := newFixture(t, nil)
	client := w.open(dialing{key: w.key(limits.PlanPro)})
	client.until(typeInitial)
	bomb := `{"type":"ping","x":"` + strings.Repeat("0", 1<<20) + `"}`
	var deflated bytes.Buffer
	z, err := flate.NewWriter(&deflated, flate.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(z, bomb); err != nil {
		t.Fatal(err)
	}
	if err := z.Flush(); err != nil {
		t.Fatal(err)
	}
	if deflated.Len() >= messageMax {
		t.Fatalf("the message has %d bytes on the wire, which is refused for that", deflated.Len())
	}
	client.send(bomb)
	if code := client.closed(); code != websocket.StatusMessageTooBig {
		t.Errorf("closed with %d, want %d", code, websocket.StatusMessageTooBig)
	}
}

func TestAnIdleClientIsPingedAndAGoneOneForgotten(t *testing.T) {
	w := newFixture(t, func(s *setup) { s.stream.Idle = 2500 * time.Millisecond })
	key := w.key(limits.PlanPro)
	w.open(dialing{key: key}).until(typeInitial) // never reads again, so it answers no ping
	alive := w.open(dialing{key: key})
	alive.until(typeInitial)
	answered := make(chan error, 1)
	go func() { _, err := alive.next(); answered <- err }()
	w.eventually("the silent one is forgotten", func() bool {
		w.hub.mu.Lock()
		defer w.hub.mu.Unlock()
		return len(w.hub.subs) == 1
	})
	newMarket(w, 1, 3)
	if err := <-answered; err != nil {
		t.Errorf("one that answers pings: %v", err)
	}
}

func TestPricesGrowStaleWhenTheLogStandsStill(t *testing.T) {
	w := newFixture(t, nil)
	m := newMarket(w, 1, 3)
	c := w.open(dialing{key: w.key(limits.PlanPro)})
	c.until(typeInitial)
	w.now.Add(int64(views.StaleAfter/time.Second) + 10)
	if f := c.frame(); f.Type != typeStale || len(f.Data) != 3 {
		t.Errorf("got %+v, want 3 stale coins", f)
	}
	m.second(1)
	if f := c.frame(); f.Type != typeFresh || len(f.Data) != 3 {
		t.Errorf("got %+v, want 3 fresh coins", f)
	}
}

func FuzzMessage(f *testing.F) {
	f.Add([]byte(`{"type":"subscribe","symbols":["BTC"],"channels":["prices"],"intervalMs":1e300}`))
	f.Add([]byte(`{"type":"unsubscribe","symbols":[]}`))
	f.Add([]byte("{\"type\":\"subscribe\",\"symbols\":[\"\\u0000\xff\"]}"))
	w := newFixture(f, nil)
	s := newSubscriber(&admission{}, nil, len(w.hub.known))
	f.Fuzz(func(t *testing.T, message []byte) {
		w.hub.answer(s, message)
		if s.interval < 1 || s.interval > 60 {
			t.Fatalf("%q sets the interval to %d s", message, s.interval)
		}
		for _, q := range s.queue {
			if _, text, ok := bytes.Cut(q.own, []byte("{")); !ok || !json.Valid(append([]byte("{"), text...)) {
				t.Fatalf("%q is answered with %q", message, q.own)
			}
		}
		s.queue, s.replies = nil, 0
	})
}

// While the pulses that end a second are read, one partition after the other, the housekeeping sends nothing: what is written of the next
// second meanwhile would come apart from the rest of it.
func TestHousekeepingEndsNoSecond(t *testing.T) {
	w := newFixture(t, nil)
	w.tick()
	w.pulse(0)
	if w.hub.straggled() {
		t.Error("a second that has only begun is taken for one that was sent without a partition")
	}
}

// A partition that is later than the gathering waits is sent all the same, before anything else moves.
func TestALatePartitionIsSentByTheHousekeeping(t *testing.T) {
	w := newFixture(t, func(s *setup) { s.stream.Gather = time.Millisecond })
	c := w.open(dialing{key: w.key(limits.PlanPro)})
	c.until("welcome")
	w.pulse(0)
	w.eventually("the second is sent without the others", func() bool { return w.ticked(w.now.Load()) })
	w.write(1, &eventsv1.PriceRecord{Body: &eventsv1.PriceRecord_Price{Price: &eventsv1.Price{CoinId: "bitcoin", Price: 7, Source: "kraken", Time: w.now.Load() * int64(time.Second)}}})
	w.pulse(1)
	if got := c.until(typeUpdate); len(got.Data) != 1 || got.Data[0].Price != 7 {
		t.Errorf("the late partition came as %+v", got.Data)
	}
}
