package apy_test

import (
	"fmt"
	"maps"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/marketlog/marketlog/processors/apy"
	"github.com/marketlog/marketlog/processors/foldtest"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream/streamtest"
)

// fact is what one record holds: words that must be the same, and numbers that must be equal but for the last digits.
type fact struct {
	words   string
	numbers []float64
}

// facts are by minute, kind and rate.
type facts map[string]fact

// oracle works out from the whole log what must be written in each minute. It keeps nothing from one minute to the next but
// when each rate was written last, goes through all answers for each question, and shares no code with the fold.
type oracle struct {
	minutes []foldtest.LogMinute
	answers map[string][]answer // by source, pool and category as the source reports them
}

type answer struct {
	minute, offset int64
	reported       *eventsv1.Rate
	apr, apy       float64
}

func newOracle(minutes []foldtest.LogMinute) *oracle {
	o := &oracle{minutes: minutes, answers: map[string][]answer{}}
	for _, m := range minutes {
		for _, records := range m.Inputs {
			for _, rec := range records {
				reported := rec.Record.(*eventsv1.ReferenceRecord).GetRate()
				if reported == nil || reported.Past {
					continue
				}
				raw, err := strconv.ParseFloat(reported.Raw, 64)
				if err != nil {
					continue
				}
				key := reported.Source + "|" + reported.Pool + "|" + reported.Category
				apr, apy := yearly(raw, reported.RawUnit, reported.Compounding)
				o.answers[key] = append(o.answers[key], answer{m.End, rec.Offset, reported, apr, apy})
			}
		}
	}
	return o
}

// yearly is the textbook's: percent a year of a rate, without and with compounding.
func yearly(raw float64, unit, compounding string) (apr, apy float64) {
	percent := map[string]float64{"apy_percent": 1, "apr_percent": 1, "apr_fraction": 100, "apr_fraction_daily": 100 * 365, "apr_fraction_hourly": 100 * 365 * 24}[unit]
	times := map[string]int64{"secondly": 365 * 24 * 60 * 60, "hourly": 365 * 24, "daily": 365}[compounding]
	apr = raw * percent
	if times == 0 {
		return apr, apr
	}
	// (1 + APR/n)^n by repeated squares, with digits enough for 31 million seconds.
	factor := new(big.Float).SetPrec(200).SetFloat64(apr)
	factor.Quo(factor, new(big.Float).SetInt64(100*times))
	factor.Add(factor, big.NewFloat(1))
	power := new(big.Float).SetPrec(200).SetInt64(1)
	for n := times; n > 0; n /= 2 {
		if n%2 == 1 {
			power.Mul(power, factor)
		}
		factor.Mul(factor, factor)
	}
	growth, _ := power.Sub(power, big.NewFloat(1)).Float64()
	return apr, growth * 100
}

// described is what a rate is of at the end of a minute.
type described struct{ category, coin, unattached, shadowed, name, simulated string }

func (o *oracle) describe(reported *eventsv1.Rate, minute int64) described {
	d := described{category: reported.Category}
	project := ""
	for _, m := range o.minutes {
		if m.End > minute {
			break
		}
		for _, rec := range m.Inputs[1] {
			r := rec.Record.(*eventsv1.ReferenceRecord)
			if p := r.GetProtocol(); p.GetSlug() == reported.Project {
				project, d.name = p.Category, p.Name
			}
			if n := r.GetNotice(); n.GetSource() == reported.Source {
				d.simulated = fmt.Sprint(n.Simulated)
			}
		}
	}
	if d.simulated == "" {
		d.simulated = "false"
	}
	if d.category == "" {
		d.category = map[string]string{"Lending": "lending", "Liquid Staking": "staking"}[project]
	}
	if d.category == "" && reported.Symbol == "WSOL-USDC" {
		d.category = "liquidity"
	}
	d.coin = map[string]string{"ETH": "ethereum", "WETH": "ethereum", "USDC": "usd-coin", "USD₮0": "tether", "WSTETH": "wrapped-steth", "STETH": "staked-ether", "SOL": "solana", "WSOL-USDC": "solana", "BTC": "bitcoin", "UST": "tether"}[reported.Symbol]
	if d.category == "staking" && reported.Symbol == "STETH" {
		d.coin = "ethereum"
	}
	if d.category == "staking" && reported.Symbol == "MSOL" {
		d.coin = "solana"
	}
	switch {
	case d.coin == "":
		d.unattached = "coin_unknown"
	case d.category == "":
		d.unattached = "category_unknown"
	}
	if reported.Source == "defillama-yields" {
		for _, key := range slices.Sorted(maps.Keys(o.answers)) {
			if last, received, ok := o.last(key, minute); ok && last.reported.Project == reported.Project && last.reported.Source != reported.Source && d.shadowed == "" &&
				minute-received <= 3*last.reported.Interval {
				d.shadowed = last.reported.Source
			}
		}
	}
	return d
}

// last is the newest answer of a rate by the end of a minute, and when one was received last.
func (o *oracle) last(key string, minute int64) (last answer, received int64, ok bool) {
	for _, a := range o.answers[key] {
		if a.minute > minute {
			break
		}
		last, received, ok = a, max(received, a.reported.IngestTime), true
	}
	return last, received, ok
}

func (o *oracle) facts() facts {
	all := facts{}
	for key := range o.answers {
		o.entries(key, all)
		o.rollups(key, all)
	}
	return all
}

// entries are those of one rate.
func (o *oracle) entries(key string, all facts) {
	var written, droppedUntil int64
	var before described
	var endedBefore bool
	for _, m := range o.minutes {
		last, received, ok := o.last(key, m.End)
		if !ok || last.minute <= droppedUntil {
			continue
		}
		updated := last.minute == m.End
		// It has ended when at the end of some minute since it was reported it had not been reported for three intervals.
		ended := !updated && m.End-received > 3*last.reported.Interval
		d := o.describe(last.reported, m.End)
		if updated || d != before || ended != endedBefore || m.End-written >= int64(time.Hour) {
			if written != 0 && d.category != before.category && !endedBefore {
				all.entry(m.End, key, last, received, before, true)
			}
			all.entry(m.End, key, last, received, d, ended)
			written, before, endedBefore = m.End, d, ended
		}
		if midnight := (last.minute-1)/day*day + day; ended && m.End >= midnight {
			droppedUntil, written, before, endedBefore = last.minute, 0, described{}, false
		}
	}
}

const day = int64(24 * time.Hour)

func (f facts) entry(minute int64, key string, a answer, received int64, d described, ended bool) {
	numbers := []float64{a.apr, a.apy}
	if a.reported.TvlUsd != "" {
		tvl, _ := strconv.ParseFloat(a.reported.TvlUsd, 64)
		numbers = append(numbers, tvl)
	}
	f.add(fmt.Sprintf("%s entry %s %s", moment(minute), key, d.category), fact{fmt.Sprint(d, received, ended, a.offset, a.reported.Raw), numbers})
}

func (f facts) add(key string, value fact) {
	if _, twice := f[key]; twice {
		key += " twice"
	}
	f[key] = value
}

// rollups are those of one rate.
func (o *oracle) rollups(key string, all facts) {
	for _, length := range []int64{int64(time.Hour), day} {
		spans := map[int64][]float64{}
		for _, a := range o.answers[key] {
			start := (a.minute - 1) / length * length
			spans[start] = append(spans[start], a.apy)
		}
		for start, apys := range spans {
			// It is published in the first minute that ends with it or after it, and is of what the rate was in the last minute
			// that ends with it or before.
			var at, within int64
			for _, m := range o.minutes {
				if m.End <= start+length {
					within = m.End
				}
				if at == 0 && m.End >= start+length {
					at = m.End
				}
			}
			if at == 0 {
				continue
			}
			last, _, _ := o.last(key, within)
			d := o.describe(last.reported, within)
			sum := 0.0
			for _, apy := range apys {
				sum += apy
			}
			numbers := []float64{apys[0], slices.Max(apys), slices.Min(apys), apys[len(apys)-1], sum / float64(len(apys)), float64(len(apys))}
			if last.reported.TvlUsd != "" {
				tvl, _ := strconv.ParseFloat(last.reported.TvlUsd, 64)
				numbers = append(numbers, tvl)
			}
			all.add(fmt.Sprintf("%s rollup %d %s %s %s", moment(at), length, moment(start), key, d.category), fact{fmt.Sprint(d.coin, d.shadowed, d.simulated), numbers})
		}
	}
}

// written are the facts that a fold put out, by way of what the source reported.
func written(outputs []foldtest.MinuteOutput) facts {
	all := facts{}
	ownrted := map[string]string{} // of a roll-up: the source's own category by the last entry
	for _, w := range outputs {
		for _, rec := range w.Records { // roll-ups come before their entry
			if e := rec.(*eventsv1.RateRecord).GetEntry(); e != nil && ownrted[e.Source+"|"+e.Pool+"|"+e.Category] == "" {
				ownrted[e.Source+"|"+e.Pool+"|"+e.Category] = e.Source + "|" + e.Pool + "|" + e.Said.Category
			}
		}
		for _, rec := range w.Records {
			r := rec.(*eventsv1.RateRecord)
			if e := r.GetEntry(); e != nil {
				numbers := []float64{e.Apr, e.Apy}
				if e.TvlUsd != nil {
					numbers = append(numbers, *e.TvlUsd)
				}
				d := described{e.Category, e.CoinId, e.Unattached, e.Shadowed, e.ProviderName, fmt.Sprint(e.Simulated)}
				all.add(fmt.Sprintf("%s entry %s|%s|%s %s", moment(e.Time), e.Source, e.Pool, e.Said.Category, e.Category), fact{fmt.Sprint(d, e.Heard, e.Ended, e.Offset, e.Said.Raw), numbers})
			}
			if b := r.GetRollup(); b != nil {
				numbers := []float64{b.Open, b.High, b.Low, b.Close, b.Mean, float64(b.N)}
				if b.TvlUsd != nil {
					numbers = append(numbers, *b.TvlUsd)
				}
				all.add(fmt.Sprintf("%s rollup %d %s %s %s", moment(w.Minute), int64(b.Interval)*int64(time.Second), moment(b.Start), ownrted[b.Source+"|"+b.Pool+"|"+b.Category], b.Category),
					fact{fmt.Sprint(b.CoinId, b.Shadowed, fmt.Sprint(b.Simulated)), numbers})
			}
		}
	}
	return all
}

// differences are the keys under which two sets of facts do not agree.
func differences(got, want facts) (keys []string) {
	for key, w := range want {
		g, ok := got[key]
		near := ok && g.words == w.words && slices.EqualFunc(g.numbers, w.numbers, func(a, b float64) bool { return math.Abs(a-b) <= 1e-10*max(1, math.Abs(b)) })
		if !near {
			keys = append(keys, fmt.Sprintf("%s: got %v, want %v", key, g, w))
		}
	}
	for key := range got {
		if _, ok := want[key]; !ok {
			keys = append(keys, key+": should not be")
		}
	}
	slices.Sort(keys)
	return keys
}

// Every entry and every roll-up of some hours with all kinds of faults in them is what an independent reckoning makes of the
// log; and that reckoning notices what it is there for.
func TestRatesAreThoseOfTheOracle(t *testing.T) {
	checked := 0
	for _, seed := range streamtest.Seeds(t, 0, 1) {
		minutes := random(seed, 400)
		want := newOracle(minutes).facts()
		outputs := foldtest.FoldMinutes(t, apy.New(), minutes, false)
		if diff := differences(written(outputs), want); len(diff) > 0 {
			t.Fatalf("seed %d: %d of %d facts differ:\n%s", seed, len(diff), len(want), strings.Join(diff[:min(len(diff), 10)], "\n"))
		}
		checked += len(want)
	}
	if checked < 1000 {
		t.Errorf("the seeds make only %d facts", checked)
	}

	minutes := random(0, 400)
	want := newOracle(minutes).facts()
	plant := func(what string, change func(*eventsv1.RateRecord)) {
		outputs := foldtest.FoldMinutes(t, apy.New(), minutes, false)
		for _, w := range outputs {
			for _, rec := range w.Records {
				change(rec.(*eventsv1.RateRecord))
			}
		}
		if n := len(differences(written(outputs), want)); n == 0 {
			t.Errorf("%s: nothing differs", what)
		}
	}
	once := func(of func(*eventsv1.RateRecord) bool) func(*eventsv1.RateRecord) {
		done := false
		return func(r *eventsv1.RateRecord) { done = done || of(r) }
	}
	plant("an APR served as APY", once(func(r *eventsv1.RateRecord) bool {
		e := r.GetEntry()
		if e == nil || e.Source != "lido" {
			return false
		}
		e.Apy = e.Apr
		return true
	}))
	plant("a negative rate clipped", once(func(r *eventsv1.RateRecord) bool {
		e := r.GetEntry()
		if e == nil || e.Apy >= 0 {
			return false
		}
		e.Apr, e.Apy = 0, 0
		return true
	}))
	plant("a negative extreme of an hour clipped", once(func(r *eventsv1.RateRecord) bool {
		b := r.GetRollup()
		if b == nil || b.Low >= 0 {
			return false
		}
		b.Low = 0
		return true
	}))
	plant("a TVL counted twice", once(func(r *eventsv1.RateRecord) bool {
		if r.GetEntry().GetTvlUsd() == 0 {
			return false
		}
		*r.GetEntry().TvlUsd *= 2
		return true
	}))
	// An answer that the fold never saw.
	lossy := slices.Clone(minutes)
	for i, m := range lossy {
		at := slices.IndexFunc(m.Inputs[0], func(rec foldtest.LogRecord) bool {
			reported := rec.Record.(*eventsv1.ReferenceRecord).GetRate()
			return !reported.Past && reported.Raw != "none"
		})
		if i > 100 && at >= 0 {
			lossy[i].Inputs = [][]foldtest.LogRecord{slices.Delete(slices.Clone(m.Inputs[0]), at, at+1), m.Inputs[1]}
			break
		}
	}
	if n := len(differences(written(foldtest.FoldMinutes(t, apy.New(), lossy, false)), want)); n == 0 {
		t.Error("an answer dropped: nothing differs")
	}
}
