package chaos

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
	"golang.org/x/sync/errgroup"

	"github.com/marketlog/marketlog/deploy/chaos/oracle"
	"github.com/marketlog/marketlog/deploy/chaos/scripted"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// scene is an installation and the two venues that it reads, and what must be true of them in the end.
type scene struct {
	t        *testing.T
	random   *rand.Rand
	in       *installation
	coinbase *scripted.Venue
	kraken   *scripted.Venue
	// polled answers for the polled sources; nil: none is asked.
	polled *polled
}

func newScene(ctx context.Context, t *testing.T, seed uint64) *scene {
	t.Helper()
	s := &scene{t: t, random: rand.New(rand.NewPCG(seed, 1))}
	var err error
	if s.coinbase, err = scripted.NewCoinbase(seed, messagesPerSecond); err != nil {
		t.Fatal(err)
	}
	if s.kraken, err = scripted.NewKraken(seed+1, messagesPerSecond); err != nil {
		t.Fatal(err)
	}
	g, ctx := errgroup.WithContext(ctx)
	ctx, cancel := context.WithCancel(ctx)
	for _, v := range s.venues() {
		g.Go(func() error { return v.Run(ctx) })
	}
	t.Cleanup(func() {
		cancel()
		if err := g.Wait(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func (s *scene) venues() []*scripted.Venue { return []*scripted.Venue{s.coinbase, s.kraken} }

// shift puts the clocks of venues and sources ahead of the machine's.
func (s *scene) shift(ahead time.Duration) {
	for _, v := range s.venues() {
		v.Shift(ahead)
	}
	if s.polled != nil {
		s.polled.ahead.Store(int64(ahead))
	}
}

// catchUpLive waits until everything acknowledged so far is visible, while ticks go on flowing.
func (s *scene) catchUpLive() {
	s.t.Helper()
	acked := s.in.acked(s.t)
	eventually(s.t, fmt.Sprintf("seeing %d acknowledged ticks", len(acked)), 2*time.Minute, func() error {
		ticks, dead, err := events(s.t.Context(), s.in)
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
func (s *scene) parade() {
	s.t.Helper()
	s.coinbase.Pause(true)
	s.kraken.Pause(true)
	counts := func() map[string]int {
		list, err := rows[struct {
			Reason string
			N      int
		}](s.t.Context(), s.in, "SELECT reason, count() AS n FROM v_dead_letters WHERE source = 'coinbase' GROUP BY reason")
		if err != nil {
			s.t.Fatal(err)
		}
		byReason := map[string]int{}
		for _, row := range list {
			byReason[row.Reason] = row.N
		}
		return byReason
	}
	var before map[string]int
	var still calm
	eventually(s.t, "dead letters standing still", time.Minute, func() error {
		last := before
		before = counts()
		// What was sent last may be on its way.
		if !still.lasts(maps.Equal(last, before), 3*time.Second) {
			return errors.New("they may grow")
		}
		return nil
	})
	eventually(s.t, "a connection", time.Minute, func() error {
		if !s.coinbase.Listened() {
			return errors.New("nobody listens")
		}
		return nil
	})
	_, sent := s.coinbase.Sent()
	s.coinbase.Parade(paradeSize)
	_, after := s.coinbase.Sent()
	want := maps.Clone(before)
	for _, kind := range scripted.Bads {
		if n := after[kind] - sent[kind]; n != paradeSize {
			s.t.Fatalf("the venue sent %d of %s, want %d", n, kind, paradeSize)
		}
		if reason := kind.Reason(); reason != "" {
			want[reason] += paradeSize
		}
	}
	eventually(s.t, "counting bad messages by their reasons", 30*time.Second, func() error {
		if got := counts(); !maps.Equal(got, want) {
			return fmt.Errorf("got %v, want %v", got, want)
		}
		return nil
	})
	s.coinbase.Pause(false)
	s.kraken.Pause(false)
}

// seeMinute waits until a minute is closed in which there were prices and trades.
func (s *scene) seeMinute() {
	s.t.Helper()
	eventually(s.t, "a candle", 3*time.Minute, s.minuteClosed)
}

// minuteClosed is nil once a minute is closed in which there were prices and trades.
func (s *scene) minuteClosed() error {
	candles, err := rows[struct{ N int }](s.t.Context(), s.in, "SELECT count() AS n FROM v_candles_1m WHERE trades > 0")
	if err == nil && candles[0].N == 0 {
		err = errors.New("no minute is closed yet")
	}
	return err
}

// seeTrading waits until a coin has a price and a trade that are not older than an instant: the minute that passes then has both.
func (s *scene) seeTrading(since time.Time) {
	s.t.Helper()
	eventually(s.t, "a price and a trade", 2*time.Minute, func() error {
		found, err := rows[struct{ N int }](s.t.Context(), s.in, fmt.Sprintf(`SELECT count() AS n FROM v_prices WHERE reason = '' AND time >= fromUnixTimestamp(%[1]d)
			AND coin_id IN (SELECT coin_id FROM v_ticks WHERE kind = 'trade' AND event_time >= fromUnixTimestamp(%[1]d))`, since.Unix()))
		if err == nil && found[0].N == 0 {
			err = errors.New("there is no coin with both")
		}
		return err
	})
}

// settle waits until every processor has folded the log to its end, and every sink holds it.
func (s *scene) settle() {
	s.t.Helper()
	ctx := s.t.Context()
	client := &kafka.Client{Addr: kafka.TCP(s.in.kafka)}
	folded := func(group, topic string) error {
		ends, err := oracle.Ends(ctx, s.in.kafka, topic)
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
				return fmt.Errorf("%s is at %d in %s/%d, want %d", group, p.CommittedOffset, topic, p.Partition, end)
			}
		}
		return nil
	}
	sunk := func(topic string) error {
		ends, err := oracle.Ends(ctx, s.in.kafka, topic)
		if err != nil {
			return err
		}
		lag, err := rows[struct {
			Partition int32 `json:"log_partition"`
			Next      int64 `json:"next_offset"`
		}](ctx, s.in, "SELECT log_partition, next_offset FROM v_lag WHERE sink = '"+topic+"'")
		if err != nil {
			return err
		}
		next := map[int32]int64{}
		for _, row := range lag {
			next[row.Partition] = row.Next
		}
		for p, end := range ends {
			if next[p] != end {
				return fmt.Errorf("the sink is at %d in %s/%d, want %d", next[p], topic, p, end)
			}
		}
		return nil
	}
	var quiet calm
	eventually(s.t, "catching up with the log", 2*time.Minute, func() error {
		err := errors.Join(
			folded("resolve", schemas.TopicTicksRaw), folded("prices", schemas.TopicTicks),
		)
		for _, topic := range schemas.Topics {
			if len(topic.Tables) > 0 && topic.Name != schemas.TopicUsage && topic.Name != schemas.TopicServed { // readers go on asking, and answers are recorded
				err = errors.Join(err, sunk(topic.Name))
			}
		}
		// What a processor has folded may still be on its way into the log.
		if !quiet.lasts(err == nil, 2*time.Second) {
			return errors.Join(err, errors.New("it may move on"))
		}
		return nil
	})
}

// checkEvents asks where each event went.
func (s *scene) checkEvents(result *report) {
	t := s.t
	t.Helper()
	ctx := t.Context()
	raw, err := oracle.Read(ctx, s.in.kafka, schemas.TopicTicksRaw)
	if err != nil {
		t.Fatal(err)
	}
	want, err := oracle.Events(raw)
	if err != nil {
		t.Fatal(err)
	}
	ticks, dead, err := events(ctx, s.in)
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
	acked := s.in.acked(t)
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

	log, err := oracle.Read(ctx, s.in.kafka, schemas.TopicTicks)
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
	quotes, err := oracle.Read(ctx, s.in.kafka, schemas.TopicQuotes)
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

// Shares of what venues said to somebody that are acknowledged: of processes that are killed every other second, with what they had read and
// not written yet, and of ones that live on.
const (
	receivedByKilled = 0.5
	receivedByAll    = 0.9
)

// checkHeard is a floor of acknowledged events that goes with how much was said, and so with the length of the round.
func (s *scene) checkReceived(result *report, share float64) {
	s.t.Helper()
	said := 0
	for _, v := range s.venues() {
		n, _ := v.Sent()
		said += n
	}
	s.t.Logf("%d messages were heard, %d events acknowledged", said, result.Acked)
	if float64(result.Acked) < share*float64(said) {
		s.t.Errorf("acknowledged events: got %d of %d messages that were heard, want at least %.0f %%", result.Acked, said, 100*share)
	}
}

func unhex(id string) string {
	b, _ := hex.DecodeString(id) // another id than any in the log, if it is not hexadecimal
	return string(b)
}

// checkViews folds the log again and compares. It returns the prices that were published.
func (s *scene) checkViews(result *report) map[priceKey]float64 {
	t := s.t
	t.Helper()
	log, err := oracle.Read(t.Context(), s.in.kafka, schemas.TopicTicks)
	if err != nil {
		t.Fatal(err)
	}
	want, err := oracle.Fold(log)
	if err != nil {
		t.Fatal(err)
	}
	got := servedRows(t, s.in)
	wrong := oracle.Compare(want, got)
	for _, w := range first(wrong) {
		t.Error(w)
	}
	result.Prices, result.Candles = len(got.Prices), len(got.Candles)
	if len(wrong) == 0 && len(got.VenueCandles) > 0 {
		s.checkOracle(log, want, got)
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
	published := map[priceKey]float64{}
	for _, p := range got.Prices {
		if p.Reason == "" {
			published[priceKey{p.Coin, p.Second}] = p.Price
		}
	}
	return published
}

// candleKey is a candle of a venue's past.
type candleKey struct {
	symbol  string
	seconds uint32
	start   int64
}

// checkBackfill asks whether every candle of the past that was asked for is in the log and in the view,
// once, and as the venue sent it.
func (s *scene) checkBackfill() {
	t := s.t
	t.Helper()
	log, err := oracle.Read(t.Context(), s.in.kafka, schemas.TopicBackfillRaw)
	if err != nil {
		t.Fatal(err)
	}
	var wrong []string
	written := map[candleKey]scripted.Candle{}
	covered := map[candleKey]bool{}
	for _, records := range log {
		for _, r := range records {
			rec := &eventsv1.BackfillRecord{}
			if err := rec.UnmarshalVT(r.Value); err != nil {
				t.Fatalf("decoding a record of %s: %v", schemas.TopicBackfillRaw, err)
			}
			if c := rec.GetCandle(); c != nil {
				key := candleKey{c.Symbol, c.Interval, c.Start / int64(time.Second)}
				if _, twice := written[key]; twice {
					wrong = append(wrong, fmt.Sprintf("candle %v is in the log twice", key))
				}
				written[key] = scripted.Candle{Low: c.Low, High: c.High, Open: c.Open, Close: c.Close, Volume: c.Volume}
				if want := canonical(scripted.Past(c.Symbol, int64(c.Interval), key.start)); written[key] != want {
					wrong = append(wrong, fmt.Sprintf("candle %v: got %v, want %v", key, written[key], want))
				}
			}
			if c := rec.GetRange(); c != nil {
				step := int64(c.Interval) * int64(time.Second)
				for at := c.FromTime; at < c.ToTime; at += step {
					key := candleKey{c.Symbol, c.Interval, at / int64(time.Second)}
					if covered[key] {
						wrong = append(wrong, fmt.Sprintf("candle %v was asked for twice, after its range was written", key))
					}
					covered[key] = true
				}
			}
		}
	}
	for key := range covered {
		if _, ok := written[key]; !ok {
			wrong = append(wrong, fmt.Sprintf("candle %v is of a range that was read, and is not in the log", key))
		}
	}
	list, err := rows[struct {
		Symbol        string
		Seconds       uint32
		At            int64
		O, H, L, C, V string
	}](t.Context(), s.in, `SELECT symbol, seconds, toUnixTimestamp(start) AS at,
		toString(open) AS o, toString(high) AS h, toString(low) AS l, toString(close) AS c, volume_exact AS v FROM v_backfill`)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[candleKey]bool{}
	for _, r := range list {
		key := candleKey{r.Symbol, r.Seconds, r.At}
		got := scripted.Candle{Low: r.L, High: r.H, Open: r.O, Close: r.C, Volume: r.V}
		if want, ok := written[key]; !ok || seen[key] || got != want {
			wrong = append(wrong, fmt.Sprintf("candle %v of v_backfill: got %v, want %v (in the log %t, seen before %t)", key, got, want, ok, seen[key]))
		}
		seen[key] = true
	}
	if len(seen) != len(written) {
		wrong = append(wrong, fmt.Sprintf("v_backfill holds %d candles, the log %d", len(seen), len(written)))
	}
	for _, w := range first(wrong) {
		t.Error(w)
	}
	if len(written) == 0 {
		t.Error("no candle was back-filled")
	}
	t.Logf("%d candles back-filled", len(written))
}

// canonical spells a candle as the log does: without zeros at the end.
func canonical(c scripted.Candle) scripted.Candle {
	for _, number := range []*string{&c.Low, &c.High, &c.Open, &c.Close, &c.Volume} {
		*number = strings.TrimSuffix(strings.TrimRight(*number, "0"), ".")
	}
	return c
}

// checkOracle plants faults: what finds none of these proves nothing.
func (s *scene) checkOracle(log map[int32][]oracle.Record, want, got oracle.Views) {
	t := s.t
	t.Helper()
	planted := func(what string, want, views oracle.Views) {
		if len(oracle.Compare(want, views)) == 0 {
			t.Errorf("the comparison does not see %s", what)
		}
	}
	i := s.random.IntN(len(got.Prices))
	altered := got
	altered.Prices = slices.Clone(got.Prices)
	altered.Prices[i].Price = math.Nextafter(altered.Prices[i].Price, math.Inf(1))
	planted("a price that is one bit off", want, altered)
	altered.Prices = slices.Clone(got.Prices)
	altered.Prices[i].Second++
	planted("a price that is a second off", want, altered)
	altered.Prices = slices.Delete(slices.Clone(got.Prices), i, i+1)
	planted("a price that is missing", want, altered)

	shorter, what, err := oracle.Without(log, got.VenueCandles[s.random.IntN(len(got.VenueCandles))])
	if err != nil {
		t.Fatal(err)
	}
	if want, err = oracle.Fold(shorter); err != nil {
		t.Fatal(err)
	}
	planted("that "+what+" is missing in the log", want, got)
}
