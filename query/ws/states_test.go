package ws

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/views"
)

// lamp is a state that a test switches, and the channel that reports it.
type lamp struct {
	mu      sync.Mutex
	state   string
	started int
	on      bool
}

func (l *lamp) set(state string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.state = state
}

// fed is how often it began to be fed, and whether it is.
func (l *lamp) fed() (times int, now bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.started, l.on
}

func (l *lamp) element() query.ChannelElement {
	return query.ChannelElement{Second: time.Now().Unix(), JSON: fmt.Appendf(nil, `{"state":%q}`, l.state)}
}

func (l *lamp) channel() query.Channel {
	return query.Channel{Name: "lamp", Code: 99, Event: "lamp_update", Doc: "A lamp.", Element: struct {
		State string `json:"state"`
	}{"red"}, Identity: "lamp", Step: time.Second,
		Present: func() []query.ChannelElement {
			l.mu.Lock()
			defer l.mu.Unlock()
			return []query.ChannelElement{l.element()}
		},
		Follow: func(ctx context.Context, emit func(int32, int64, query.ChannelRecord)) error {
			l.mu.Lock()
			l.started++
			l.on = true
			known := l.state
			l.mu.Unlock()
			emit(0, 0, query.ChannelRecord{Until: time.Now().Unix(), Partial: true})
			look := time.NewTicker(time.Second)
			defer look.Stop()
			for {
				select {
				case <-ctx.Done():
					l.mu.Lock()
					defer l.mu.Unlock()
					l.on = false
					return ctx.Err()
				case <-look.C:
				}
				l.mu.Lock()
				rec := query.ChannelRecord{Until: time.Now().Unix()}
				if l.state != known {
					known = l.state
					rec.Elements = []query.ChannelElement{l.element()}
				}
				l.mu.Unlock()
				emit(0, 0, rec)
			}
		}}
}

// A channel of states begins with those of the present, also after a while and with a cursor; it is fed while it has readers, and a
// minute longer.
func TestStatesBeginWithThePresentAndAreFedOnDemand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &lamp{state: "red"}
		coins := scriptCoins(t)
		hub, err := NewHub(DefaultConfig(), Deps{Prices: views.NewPriceCache(coins), Catalog: views.NewCatalog(coins), Channels: []query.Channel{l.channel()},
			Waiting: func() string { return "" }, Now: time.Now, Metrics: prometheus.NewRegistry(), Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		over := make(chan struct{})
		go func() { _ = hub.Run(ctx); close(over) }()
		defer func() { cancel(); <-over }()
		var mu sync.Mutex
		connect := func(cursor string, snapshot bool) (received func() []string, cut func()) {
			var all []string
			asks := request{extended: true, silent: !snapshot, heartbeat: time.Second, cursor: cursor}
			if err := hub.nameChannels(&asks, []string{"lamp"}); err != nil {
				t.Fatal(err)
			}
			cut = readLines(hub, &asks, func() time.Duration { return 0 }, func(line []byte) {
				var m struct {
					Type, Cursor string
					Data         []struct{ State string }
				}
				if err := json.Unmarshal(line, &m); err != nil {
					t.Error(err)
				}
				if m.Cursor != "" {
					t.Errorf("a cursor has no place of states: %s", line)
				}
				mu.Lock()
				defer mu.Unlock()
				for _, s := range m.Data {
					all = append(all, s.State)
				}
			})
			return func() []string {
				mu.Lock()
				defer mu.Unlock()
				return slices.Clone(all)
			}, cut
		}
		expect := func(what string, received func() []string, want ...string) {
			t.Helper()
			time.Sleep(3 * time.Second)
			if got := received(); !slices.Equal(got, want) {
				t.Errorf("%s: got %v, want %v", what, got, want)
			}
		}
		time.Sleep(5 * time.Minute)
		if times, _ := l.fed(); times != 0 {
			t.Error("it was fed without a reader")
		}
		first, cutFirst := connect("", true)
		expect("the first reader", first, "red")
		l.set("green")
		expect("the first reader", first, "red", "green")
		second, cutSecond := connect("", true)
		silent, cutSilent := connect("", false)
		expect("the second reader", second, "green")
		l.set("off")
		expect("the first reader", first, "red", "green", "off")
		expect("the second reader", second, "green", "off")
		expect("one without a snapshot", silent, "off")
		cutFirst()
		cutSecond()
		cutSilent()
		time.Sleep(50 * time.Second)
		if times, on := l.fed(); times != 1 || !on {
			t.Errorf("50 s after the last reader: fed %d times, and is fed: %t, want 1, true", times, on)
		}
		l.set("red")
		time.Sleep(2 * time.Second)
		back, cutBack := connect("", true)
		if times, on := l.fed(); !on || times != 1 {
			t.Error("it was fed anew for one who came back")
		}
		expect("one who came back", back, "red")
		cutBack()
		time.Sleep(62 * time.Second)
		if _, on := l.fed(); on {
			t.Error("it is fed a minute after the last reader")
		}
		l.set("green")
		late, cutLate := connect("", true)
		defer cutLate()
		expect("one who came late", late, "green")
		if times, _ := l.fed(); times != 2 {
			t.Errorf("fed %d times, want 2", times)
		}
	})
}

// Of channels with a place and such of states, a cursor holds the places.
func TestACursorHoldsNoPlaceOfStates(t *testing.T) {
	coins := scriptCoins(t)
	log := newCandleLog(coins)
	l := &lamp{state: "red"}
	w := newFixture(t, func(s *setup) {
		s.coins, s.auth, s.channels = coins, query.AuthOpen, append(log.channels(), l.channel())
	})
	log.follow(t, w.hub.ApplyTo("candles.v1"), make([]int, 8), log.ends())
	for p := range log.partitions {
		log.pulse(p, time.Date(2026, 3, 1, 10, 0, 5, 0, time.UTC))
	}
	log.follow(t, w.hub.ApplyTo("candles.v1"), make([]int, 8), log.ends())
	until := func(c *client, kind string) string {
		for {
			text, err := c.next()
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasPrefix(text, `{"type":"`+kind+`"`) {
				return text
			}
		}
	}
	c := w.open(dialing{query: "?channels=candles:1m,lamp"})
	until(c, "subscribed")
	var m struct{ Cursor string }
	if err := json.Unmarshal([]byte(until(c, "lamp_update")), &m); err != nil {
		t.Fatal(err)
	}
	_, places, err := parseCursors(m.Cursor, w.hub.partitionsOf)
	if err != nil || len(places) != 1 || places[1] == nil {
		t.Fatalf("%q has the places %v, %v, want that of the candles", m.Cursor, places, err)
	}
	c = w.open(dialing{query: "?channels=candles:1m,lamp&cursor=" + m.Cursor})
	until(c, "lamp_update")
	until(c, "live")
}
