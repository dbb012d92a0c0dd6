package figures

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/plain"

	"github.com/marketlog/marketlog/deploy/config"
	"github.com/marketlog/marketlog/deploy/embedded"
	"github.com/marketlog/marketlog/schemas"
)

const (
	latencyCoins   = 50
	latencySeconds = 40
	latencyWarming = 5
	// ticksCoins is how many coins a client of the channel of ticks may follow.
	ticksCoins = 20
)

// BenchmarkWireToSubscriber asks how long a trade takes from an exchange's wire through the log, which
// it passes three times, to a subscriber of the stream. Prices are published once a second, so that a
// trade waits half a second on average by design: wire- measures the whole way, pulse- what remains of it
// from the end of the second in which the trade was sent, and ticks- is the way of the trade itself to who follows the ticks of the first
// coins, which passes the log twice and waits for no second. hop- is the limit: one record through the same broker, in the same seconds.
func BenchmarkWireToSubscriber(b *testing.B) {
	program := build(b)
	var bases []string
	for _, coin := range schemas.Coins().All() {
		// One symbol, one coin; and no coin that others are quoted in.
		if coin.Kind == "coin" && len(schemas.Coins().BySymbol(coin.Symbol)) == 1 && len(bases) < latencyCoins {
			bases = append(bases, coin.Symbol)
		}
	}
	v := newVenue(b, bases)
	in := newInstance(b, program, append(only(b, program, "coinbase"), v.settings()...)...)
	p := in.start(b, "live")
	began := time.Now()
	in.await(b, p, "/healthz", began)
	select {
	case <-v.asked:
	case <-time.After(patience):
		b.Fatalf("nobody subscribed to the venue within %s:\n%s", patience, p.output)
	}
	for b.Loop() {
		var wire, pulse, ticks, hops []float64
		ctx, cancel := context.WithCancel(b.Context())
		seen, seenTicks := make(chan arrival, 2*latencyCoins*latencySeconds), make(chan arrival, 2*ticksCoins*latencySeconds)
		var all sync.WaitGroup
		all.Go(func() { hops = hop(ctx, b, in) })
		sent := map[string]time.Time{}
		until := time.Now().Truncate(time.Second).Add(time.Second)
		for second := range latencyWarming + latencySeconds {
			if second == latencyWarming {
				// By now each coin has a price and is sent.
				if err := subscribe(ctx, &all, in.rest, "", "price_update", seen); err != nil {
					b.Fatal(err)
				}
				if err := subscribe(ctx, &all, in.rest, "?channels=ticks&symbols="+strings.Join(bases[:ticksCoins], ","), "ticks", seenTicks); err != nil {
					b.Fatal(err)
				}
			}
			for i, base := range bases {
				at := until.Add(time.Duration((float64(i) + rand.Float64()) / latencyCoins * float64(time.Second)))
				pause(ctx, at)
				price := float64(1000 + second)
				when, err := v.trade(ctx, base, price)
				if err != nil {
					b.Fatalf("sending a trade: %v\n%s", err, p.output)
				}
				if second > latencyWarming {
					sent[key(base, price)] = when
				}
			}
			until = until.Add(time.Second)
		}
		pause(ctx, time.Now().Add(3*time.Second))
		cancel()
		all.Wait()
		close(seen)
		close(seenTicks)
		for a := range seenTicks {
			if when, ours := sent[a.key]; ours {
				ticks = append(ticks, milliseconds(a.at.Sub(when)))
			}
		}
		for a := range seen {
			when, ours := sent[a.key]
			if !ours {
				continue
			}
			delete(sent, a.key)
			wire = append(wire, milliseconds(a.at.Sub(when)))
			pulse = append(pulse, milliseconds(a.at.Sub(when.Truncate(time.Second).Add(time.Second))))
		}
		if len(wire) == 0 || len(hops) == 0 || len(ticks) < ticksCoins*(latencySeconds-1) {
			b.Fatalf("%d trades as prices, %d as ticks and %d records arrived", len(wire), len(ticks), len(hops))
		}
		b.ReportMetric(middle(wire), "wire-p50-ms")
		b.ReportMetric(nearly(wire), "wire-p99-ms")
		b.ReportMetric(middle(pulse), "pulse-p50-ms")
		b.ReportMetric(nearly(pulse), "pulse-p99-ms")
		b.ReportMetric(middle(ticks), "ticks-p50-ms")
		b.ReportMetric(nearly(ticks), "ticks-p99-ms")
		b.ReportMetric(middle(hops), "hop-p50-ms")
		b.ReportMetric(nearly(hops), "hop-p99-ms")
		b.ReportMetric(float64(len(wire)), "trades")
		// Two trades of a coin within one second, by the venue's clock or by the reader's, are sent as one.
		b.ReportMetric(float64(len(sent)), "overtaken")
	}
	p.stop()
}

// arrival is when a subscriber received a price.
type arrival struct {
	key string
	at  time.Time
}

func key(symbol string, price float64) string { return fmt.Sprint(symbol, " ", price) }

// number is a JSON number, or a decimal as text.
type number float64

func (n *number) UnmarshalJSON(text []byte) error {
	value, err := strconv.ParseFloat(strings.Trim(string(text), `"`), 64)
	*n = number(value)
	return err
}

// subscribe follows messages of a kind of the stream until ctx ends.
func subscribe(ctx context.Context, all *sync.WaitGroup, rest, selection, kind string, seen chan<- arrival) error {
	conn, _, err := websocket.Dial(ctx, "ws://"+rest+"/api/v1/prices/ws"+selection, nil)
	if err != nil {
		return fmt.Errorf("subscribing: %w", err)
	}
	conn.SetReadLimit(1 << 20)
	all.Go(func() {
		defer conn.CloseNow()
		for {
			_, text, err := conn.Read(ctx)
			if err != nil {
				return
			}
			at := time.Now()
			var frame struct {
				Type string
				Data []struct {
					Symbol string
					Price  number
				}
			}
			if json.Unmarshal(text, &frame) != nil || frame.Type != kind {
				continue
			}
			for _, e := range frame.Data {
				seen <- arrival{key(e.Symbol, float64(e.Price)), at}
			}
		}
	})
	return nil
}

// hop measures until ctx ends how long one record takes to be acknowledged by and read from the log, in
// milliseconds, twenty times a second.
func hop(ctx context.Context, b *testing.B, in *instance) (took []float64) {
	const topic = "figures"
	// Who has no password may only read the log.
	password, err := os.ReadFile(filepath.Join(in.dir, config.KafkaPasswordFile))
	if err != nil {
		b.Error(err)
		return nil
	}
	login := plain.Auth{User: embedded.User, Pass: strings.TrimSpace(string(password))}.AsMechanism()
	client, err := kgo.NewClient(kgo.SeedBrokers(in.kafka), kgo.SASL(login), kgo.ConsumeTopics(topic), kgo.ProducerLinger(0),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtEnd()))
	if err != nil {
		b.Error(err)
		return nil
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	if _, err := admin.CreateTopic(ctx, 1, 1, nil, topic); err != nil {
		b.Errorf("creating a topic: %v", err)
		return nil
	}
	defer func() {
		if _, err := admin.DeleteTopic(context.WithoutCancel(ctx), topic); err != nil {
			b.Errorf("deleting a topic: %v", err)
		}
	}()
	var reading sync.WaitGroup
	reading.Go(func() {
		for {
			fetches := client.PollFetches(ctx)
			if ctx.Err() != nil {
				return
			}
			fetches.EachRecord(func(rec *kgo.Record) {
				at := time.Unix(0, int64(binary.BigEndian.Uint64(rec.Value)))
				took = append(took, milliseconds(time.Since(at)))
			})
		}
	})
	for ctx.Err() == nil {
		value := make([]byte, 200) // about a tick's
		binary.BigEndian.PutUint64(value, uint64(time.Now().UnixNano()))
		client.Produce(ctx, &kgo.Record{Topic: topic, Value: value}, nil)
		pause(ctx, time.Now().Add(50*time.Millisecond))
	}
	reading.Wait()
	return took
}
