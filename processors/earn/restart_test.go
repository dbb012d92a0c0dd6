package earn_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/marketlog/marketlog/processors"
	"github.com/marketlog/marketlog/processors/earn"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream/streamtest"
)

// logMinute is what rates.v1 holds of one minute.
type logMinute struct {
	end     int64
	entries []*eventsv1.RateEntry
}

// output is what a fold wrote in one minute.
type output struct {
	minute  int64
	records []*eventsv1.EarnRecord
	bytes   [][]byte
}

func equal(a, b output) bool {
	return a.minute == b.minute && slices.EqualFunc(a.bytes, b.bytes, bytes.Equal)
}

func closeMinute(t testing.TB, fold processors.MinuteFold, m logMinute, loaded bool) output {
	t.Helper()
	for _, e := range m.entries {
		fold.Take(m.end, processors.Input{}, &eventsv1.RateRecord{Body: &eventsv1.RateRecord_Entry{Entry: e}})
	}
	if loaded {
		fold.Close(m.end, nil)
		return output{minute: m.end}
	}
	var out processors.Outputs
	out.Begin(processors.Input{Offset: m.end})
	fold.Close(m.end, &out)
	written := output{minute: m.end}
	for _, o := range out.List {
		value, err := o.Record.(*eventsv1.EarnRecord).MarshalVT()
		if err != nil {
			t.Fatal(err)
		}
		decoded := &eventsv1.EarnRecord{}
		if err := decoded.UnmarshalVT(value); err != nil {
			t.Fatal(err)
		}
		written.records = append(written.records, decoded)
		written.bytes = append(written.bytes, value)
	}
	return written
}

// memory is how far back the inputs and the output are read at a start.
const memory = processors.StateEvery + 2*time.Minute

// takeOver makes a fold that goes on after minutes[at] from what was written up to there.
func takeOver(t testing.TB, minutes []logMinute, written []output, at int) processors.MinuteFold {
	t.Helper()
	from := 0
	for i, m := range minutes[:at+1] {
		if m.end <= minutes[at].end-int64(memory) {
			from = i
		}
	}
	fold := earn.New(schemas.Coins())
	for _, w := range written[from : at+1] {
		for _, rec := range w.records {
			fold.Load(proto.CloneOf(rec))
		}
	}
	for _, m := range minutes[from : at+1] {
		closeMinute(t, fold, m, true)
	}
	return fold
}

// rate is one that the generator reports; it writes it as the apy fold does: when it is reported, when it ended, and once an hour.
type rate struct {
	entry   *eventsv1.RateEntry
	written int64
	// offered means that its source reports it.
	offered bool
}

// random is some hours of rates with all that goes wrong with them: sources that fall silent, rates that are left out and come
// back, that are shadowed and uncovered, whose terms, terms of deposit and coins change, and minutes that nobody received.
func random(seed uint64, length int) []logMinute {
	r := rand.New(rand.NewPCG(seed, 1))
	end := time.Date(2026, 1, 5, 21, 30, 0, 0, time.UTC).UnixNano()
	every := map[string]int64{"okx": 5, "bybit": 10, "gate": 30, "aave": 5, "defillama-yields": 60, "lido": 60}
	sources := []string{"okx", "bybit", "gate", "aave", "defillama-yields", "lido"}
	coins := []string{"tether", "usd-coin", "dai", "ethereum", "euro-coin"}
	var rates []*rate
	for s, source := range sources {
		for i := range 7 {
			provider := source
			if source == "defillama-yields" {
				provider = []string{"aave", "compound-v3", "spark"}[i%3]
			}
			rates = append(rates, &rate{offered: true, entry: &eventsv1.RateEntry{
				Provider: provider, Source: source, Category: append(schemas.EarnCategories, schemas.RateBorrowing)[(s+i/3)%3], CoinId: coins[i%len(coins)], Symbol: "S",
				Pool: fmt.Sprint("pool", i), Said: &eventsv1.Rate{RawUnit: "apr_percent", Compounding: "daily", Interval: every[source] * int64(time.Minute)},
			}})
		}
	}
	silent := map[string]bool{}
	var minutes []logMinute
	for i := range length {
		end += int64(time.Minute)
		if i%83 == 40 {
			end += int64(r.IntN(100)) * int64(time.Minute)
		}
		if seed%2 == 1 && i == length*2/3 {
			end += int64(40 * 24 * time.Hour)
		}
		m := logMinute{end: end}
		for _, source := range sources {
			if r.IntN(60) == 0 {
				silent[source] = !silent[source]
			}
		}
		for _, x := range rates {
			if row := x.next(r, end, int64(i)%every[x.entry.Source] == 0 && !silent[x.entry.Source]); row != nil {
				m.entries = append(m.entries, row)
			}
		}
		minutes = append(minutes, m)
	}
	return minutes
}

// next is the row of a minute, nil for none.
func (x *rate) next(r *rand.Rand, end int64, asked bool) *eventsv1.RateEntry {
	e := proto.CloneOf(x.entry)
	if r.IntN(100) == 0 {
		x.offered = !x.offered
	}
	switch {
	case asked && x.offered:
		x.report(r, e, end)
	case e.Heard == 0 || e.Ended:
		return nil
	case end-e.Heard > 3*e.Said.Interval:
		e.Ended = true
	case end-x.written < int64(time.Hour):
		return nil
	}
	e.Time = end
	x.entry, x.written = e, end
	return e
}

func (x *rate) report(r *rand.Rand, e *eventsv1.RateEntry, end int64) {
	e.Ended, e.Heard = false, end-int64(r.IntN(50))*int64(time.Second)
	if r.IntN(3) == 0 {
		e.Apr = float64(r.IntN(4000)-200) / 100
		e.Apy = e.Apr * 1.02
	}
	if tvl := float64(r.IntN(1e8)); r.IntN(5) == 0 {
		e.TvlUsd = &tvl
	}
	switch r.IntN(120) {
	case 0:
		e.TvlUsd = nil
	case 1:
		e.Said.MinAmount = fmt.Sprint(r.IntN(3))
	case 2:
		e.Said.Promo = !e.Said.Promo
	case 3:
		e.Said.Tiers = []*eventsv1.RateTier{{From: "0", To: fmt.Sprint(r.IntN(3)), Raw: "5"}}
	case 4:
		e.Term = []string{"", "flexible", "30d"}[r.IntN(3)]
	case 5:
		e.CoinId = []string{"tether", "usd-coin", "dai"}[r.IntN(3)]
	case 6:
		e.Shadowed = []string{"", "aave"}[r.IntN(2)]
	case 7:
		e.Unattached, e.CoinId = "", "tether"
	case 8:
		e.Unattached, e.CoinId = "coin_unknown", ""
	case 9:
		e.Said.LockupDays = proto.Float64(float64(r.IntN(2)))
	}
}

func whole(t testing.TB, minutes []logMinute) []output {
	t.Helper()
	fold := earn.New(schemas.Coins())
	var written []output
	for _, m := range minutes {
		written = append(written, closeMinute(t, fold, m, false))
	}
	return written
}

// A fold that begins again at any minute, and again soon after, writes the same bytes as one that never stopped.
func TestRestartAtAnyMinuteChangesNothing(t *testing.T) {
	seen := map[string]int{}
	for _, seed := range streamtest.Seeds(t, 0, 1, 5) { // 5 replaces a variant while another of its source is silent
		minutes := random(seed, 260)
		want := whole(t, minutes)
		for _, w := range want {
			for _, rec := range w.records {
				seen[rec.GetVariant().GetStatus()]++
				seen[rec.GetFixing().GetSegment()]++
			}
		}
		for at := int(seed % 2); at < len(minutes)-1; at += 2 {
			again := min(len(minutes)-1, at+1+at%11)
			for i, fold := at+1, takeOver(t, minutes, want, at); i < min(len(minutes), at+65); i++ {
				if i == again+1 {
					fold = takeOver(t, minutes, want, again)
				}
				if got := closeMinute(t, fold, minutes[i], false); !equal(got, want[i]) {
					t.Fatalf("seed %d: begun again behind minute %d, minute %d has other bytes:\n%s", seed, at, i, difference(got, want[i]))
				}
			}
		}
	}
	for _, what := range []string{schemas.EarnOpen, schemas.EarnSilent, schemas.EarnReplaced, schemas.EarnClosed, schemas.EarnCeFi, schemas.EarnDeFi} {
		if seen[what] == 0 {
			t.Errorf("the seeds make nothing that is %s", what)
		}
	}
}

func difference(got, want output) string {
	for i := range max(len(got.records), len(want.records)) {
		switch {
		case i >= len(got.records):
			return fmt.Sprintf("record %d is missing: want %v", i, want.records[i])
		case i >= len(want.records):
			return fmt.Sprintf("record %d should not be: got %v", i, got.records[i])
		case !bytes.Equal(got.bytes[i], want.bytes[i]):
			return fmt.Sprintf("record %d:\n got %.1500v\nwant %.1500v", i, got.records[i], want.records[i])
		}
	}
	return "none"
}
