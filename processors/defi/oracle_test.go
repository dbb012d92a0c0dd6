package defi_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/marketlog/marketlog/processors/defi"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream/streamtest"
)

// oracle works out every field of a summary again, from all that was reported, without the formulas of schemas.
type oracle struct {
	protocols         map[string]*eventsv1.Protocol
	chains            map[string]string
	words             map[string]map[string]*eventsv1.Coin
	rates             map[string]*eventsv1.RateEntry
	counting          []*eventsv1.RateEntry // of the minute that is worked out
	caps              map[string]float64
	total             float64
	read, summed      int64
	invented, markets bool
}

func newOracle() *oracle {
	return &oracle{
		protocols: map[string]*eventsv1.Protocol{}, chains: map[string]string{}, words: map[string]map[string]*eventsv1.Coin{},
		rates: map[string]*eventsv1.RateEntry{}, caps: map[string]float64{},
	}
}

func (o *oracle) hear(rec eventsv1.Marked) {
	switch r := rec.(type) {
	case *eventsv1.RateRecord:
		e := r.GetEntry()
		o.rates[e.Source+e.Category+e.Pool] = e
	case *eventsv1.MarketRecord:
		if s := r.GetSummary(); s != nil {
			o.total, o.summed, o.markets = s.TotalMarketCap, s.Time, s.Simulated
		} else if m := r.GetMarket(); m.MarketCap != nil {
			o.caps[m.CoinId] = *m.MarketCap
		} else {
			delete(o.caps, m.CoinId)
		}
	case *eventsv1.ReferenceRecord:
		switch {
		case r.GetProtocol().GetSource() == "defillama":
			o.protocols[r.GetProtocol().Slug] = r.GetProtocol()
			o.read = max(o.read, r.GetProtocol().IngestTime)
		case r.GetFetch() != nil && r.GetFetch().Error == "":
			o.read = max(o.read, r.GetFetch().Started)
		case r.GetChainTvl() != nil:
			o.chains[r.GetChainTvl().Chain] = r.GetChainTvl().CoinId
		case r.GetCoin() != nil:
			c := r.GetCoin()
			if o.words[c.SourceId] == nil {
				o.words[c.SourceId] = map[string]*eventsv1.Coin{}
			}
			o.words[c.SourceId][c.Source+" "+c.Part] = c // coingecko lies before some-source, detail before list
		case r.GetNotice() != nil:
			o.invented = r.GetNotice().Simulated
		}
	}
}

// amount is a number of the source that can be.
func amount(text string) float64 {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(f) || f < 0 || f > 1e15 {
		return 0
	}
	return f
}

type object = map[string]any

// part sets a share of a whole where there is one.
func (o *oracle) part(into object, name string, part, whole, times float64) {
	if whole > 0 {
		into[name] = part / whole * times
	}
}

// lent is what an entry weighs, 0 for none.
func lent(e *eventsv1.RateEntry) float64 { return e.GetTvlUsd() }

func (o *oracle) count(minute int64) {
	o.counting = nil
	for _, key := range slices.Sorted(maps.Keys(o.rates)) {
		e := o.rates[key]
		if !e.Ended && e.Unattached == "" && e.Shadowed == "" && e.Chain != "" && minute-e.Heard <= min(3*e.Said.Interval, int64(2*time.Hour)) {
			o.counting = append(o.counting, e)
		}
	}
}

func (o *oracle) counted(category string, also func(*eventsv1.RateEntry) bool) (list []*eventsv1.RateEntry) {
	for _, e := range o.counting {
		if e.Category == category && also(e) {
			list = append(list, e)
		}
	}
	return list
}

func (o *oracle) mean(into object, name string, entries []*eventsv1.RateEntry) {
	sum, weighted, weight := 0.0, 0.0, 0.0
	for _, e := range entries {
		sum += e.Apy
		weighted += e.Apy * lent(e)
		weight += lent(e)
	}
	switch {
	case weight > 0:
		into[name] = weighted / weight
	case len(entries) > 0:
		into[name] = sum / float64(len(entries))
	}
}

func (o *oracle) means(category string) object {
	all, m, apys := o.counted(category, every), object{}, []float64{}
	sum, weight := 0.0, 0.0
	for _, e := range all {
		apys = append(apys, e.Apy)
		sum += e.Apy
		weight += lent(e)
	}
	if n := len(all); n > 0 {
		sort.Float64s(apys)
		m["count"], m["average"], m["median"] = float64(n), sum/float64(n), (apys[(n-1)/2]+apys[n/2])/2
	}
	if weight > 0 {
		o.mean(m, "weighted", all)
	}
	return m
}

func every(*eventsv1.RateEntry) bool { return true }

func top(rows []object, most int) []any {
	rows = slices.DeleteFunc(rows, func(r object) bool { return r["value"].(float64) == 0 })
	slices.SortFunc(rows, func(a, b object) int {
		return cmp.Or(-cmp.Compare(a["value"].(float64), b["value"].(float64)), strings.Compare(a["key"].(string), b["key"].(string)))
	})
	var list []any
	for _, r := range rows[:min(most, len(rows))] {
		maps.DeleteFunc(r, func(_ string, v any) bool { return v == "" })
		list = append(list, r)
	}
	return list
}

// summary is nil while nothing is known to be locked.
func (o *oracle) summary(minute int64) object {
	o.count(minute)
	s := object{"read": fmt.Sprint(o.read)}
	put := func(into object, name string, f float64) {
		if f != 0 {
			into[name] = f
		}
	}
	sum := func(of func(p *eventsv1.Protocol) float64) (sum float64) {
		for _, slug := range slices.Sorted(maps.Keys(o.protocols)) {
			if p := o.protocols[slug]; o.read-p.IngestTime <= int64(8*24*time.Hour) {
				sum += of(p)
			}
		}
		return sum
	}
	locked := func(categories ...string) float64 {
		return sum(func(p *eventsv1.Protocol) float64 {
			if slices.Contains(categories, p.Category) {
				return amount(p.Tvl)
			}
			return 0
		})
	}
	everywhere := locked(slices.DeleteFunc(slices.Clone(categories), func(c string) bool { return c == "CEX" })...)
	debt := sum(func(p *eventsv1.Protocol) float64 { return o.owed(p) })
	if everywhere == 0 && debt == 0 {
		return nil
	}
	liquid, lending, staked := locked("Liquid Staking"), locked("Lending"), locked("Liquid Staking", "Staking Pool")
	put(s, "total_tvl", everywhere-liquid)
	put(s, "total_tvl_with_double_count", everywhere)
	put(s, "lending_tvl", lending)
	put(s, "staking_tvl", liquid)
	put(s, "borrowing_tvl", debt)
	put(s, "cefi_tvl", locked("CEX"))
	o.part(s, "defi_to_cefi_ratio", everywhere-liquid, locked("CEX"), 1)
	put(s, "protocol_count", sum(func(p *eventsv1.Protocol) float64 {
		if p.Category != "CEX" && amount(p.Tvl) > 0 {
			return 1
		}
		return 0
	}))
	if marketCap, known := o.marketCap(); known {
		s["defi_market_cap"] = marketCap
		o.part(s, "defi_market_dominance", marketCap, o.total, 100)
	}
	s["lending_rates"], s["staking_rates"], s["borrowing_rates"] = o.means("lending"), o.means("staking"), o.means("borrowing")
	simulated, oldest := o.invented || o.markets, o.read
	if _, known := o.marketCap(); known && o.summed > 0 {
		oldest = min(oldest, o.summed)
	}
	for _, category := range []string{"lending", "staking", "borrowing"} {
		for _, e := range o.counted(category, every) {
			simulated, oldest = simulated || e.Simulated, min(oldest, e.Heard)
		}
	}
	s["oldest"] = fmt.Sprint(oldest)
	if simulated {
		s["simulated"] = true
	}

	// The lists.
	lend, stake, borrow := object{}, object{}, object{}
	s["lending"], s["staking"], s["borrowing"] = lend, stake, borrow
	var lenders, stakers, debtors []object
	onChain := map[string]float64{}
	borrowedOfLenders, collateral := 0.0, 0.0
	sum(func(p *eventsv1.Protocol) float64 {
		value, owed := amount(p.Tvl), o.owed(p)
		if p.Category == "CEX" || value == 0 && owed == 0 {
			return 0
		}
		of := func(category string) []*eventsv1.RateEntry {
			return o.counted(category, func(e *eventsv1.RateEntry) bool { return e.Provider == p.Slug })
		}
		base := object{"key": p.Slug, "name": p.Name, "symbol": p.Symbol}
		if p.Category == "Lending" {
			row := maps.Clone(base)
			row["value"] = value
			o.part(row, "share", value, lending, 100)
			if f, err := strconv.ParseFloat(p.Change1D, 64); err == nil {
				row["change24h"] = f
			}
			if owed > 0 {
				row["utilization"] = owed / (value + owed) * 100
			}
			o.mean(row, "apy", of("lending"))
			o.mean(row, "borrow_apy", of("borrowing"))
			if names := chainsOf(p); len(names) > 0 {
				row["chains"] = names
			}
			lenders = append(lenders, row)
			borrowedOfLenders += owed
		}
		if p.Category == "Liquid Staking" || p.Category == "Staking Pool" {
			row := maps.Clone(base)
			row["value"] = value
			o.part(row, "share", value, staked, 100)
			o.mean(row, "apy", of("staking"))
			stakers = append(stakers, row)
			for _, c := range p.Chains {
				if slices.Contains(onChains, c.Chain) {
					onChain[c.Chain] += amount(c.Amount)
				}
			}
		}
		if owed > 0 {
			row := maps.Clone(base)
			row["value"], row["collateral"], row["collateralization_ratio"] = owed, value+owed, (value+owed)/owed*100
			o.part(row, "share", owed, debt, 100)
			o.mean(row, "borrow_apy", of("borrowing"))
			debtors = append(debtors, row)
			collateral += value + owed
		}
		return 0
	})
	list := func(into object, name string, rows []object, most int) {
		if all := top(rows, most); len(all) > 0 {
			into[name] = all
		}
	}
	put(lend, "borrowed", borrowedOfLenders)
	o.part(lend, "utilization", borrowedOfLenders, lending+borrowedOfLenders, 100)
	put(lend, "protocol_count", float64(len(lenders)))
	list(lend, "protocols", lenders, 20)
	list(lend, "assets", o.assets("lending", "apy", "borrowing"), 50)
	put(stake, "staked", staked)
	o.part(stake, "liquid_dominance", liquid, staked, 100)
	put(stake, "protocol_count", float64(len(stakers)))
	list(stake, "protocols", stakers, 20)
	var onEach []object
	for chain, value := range onChain {
		row := object{"key": chain, "name": chain, "coin_id": o.chains[chain], "value": value}
		o.part(row, "share", value, staked, 100)
		o.mean(row, "apy", o.counted("staking", func(e *eventsv1.RateEntry) bool { return e.Chain == chain }))
		if marketCap := o.caps[o.chains[chain]]; marketCap > 0 {
			row["staking_ratio"] = value / marketCap * 100
		}
		onEach = append(onEach, row)
	}
	list(stake, "chains", onEach, 30)
	put(borrow, "collateral", collateral)
	o.part(borrow, "collateralization_ratio", collateral, debt, 100)
	o.part(borrow, "utilization", debt, collateral, 100)
	put(borrow, "protocol_count", float64(len(debtors)))
	list(borrow, "protocols", debtors, 20)
	list(borrow, "assets", o.assets("borrowing", "borrow_apy", ""), 50)
	return s
}

// owed is what was borrowed from a protocol: in all, else on each chain.
func (o *oracle) owed(p *eventsv1.Protocol) float64 {
	if p.Category == "CEX" {
		return 0
	}
	onEach := 0.0
	for _, c := range p.Chains {
		if c.Chain == "borrowed" {
			return amount(c.Amount)
		}
		if strings.HasSuffix(c.Chain, "-borrowed") {
			onEach += amount(c.Amount)
		}
	}
	return onEach
}

func chainsOf(p *eventsv1.Protocol) (names []any) {
	var chains []*eventsv1.ChainAmount
	for _, c := range p.Chains {
		if slices.Contains(onChains, c.Chain) && amount(c.Amount) > 0 {
			chains = append(chains, c)
		}
	}
	slices.SortFunc(chains, func(a, b *eventsv1.ChainAmount) int { return cmp.Compare(amount(b.Amount), amount(a.Amount)) })
	for _, c := range chains {
		names = append(names, c.Chain)
	}
	return names
}

// marketCap is of the coins that the first source which puts them in any category puts in DeFi.
func (o *oracle) marketCap() (sum float64, known bool) {
	for _, id := range slices.Sorted(maps.Keys(o.words)) {
		for _, source := range slices.Sorted(maps.Keys(o.words[id])) {
			names := o.words[id][source].Categories
			if len(names) == 0 {
				continue
			}
			marketCap, ok := o.caps[id]
			if ok && (slices.Contains(names, "DeFi") || slices.Contains(names, "Decentralized Finance (DeFi)")) {
				sum, known = sum+marketCap, true
			}
			break
		}
	}
	return sum, known
}

func (o *oracle) assets(category, name, beside string) (rows []object) {
	for _, coin := range generatedCoins {
		of := func(category string) []*eventsv1.RateEntry {
			return o.counted(category, func(e *eventsv1.RateEntry) bool { return e.CoinId == coin })
		}
		row, value := object{"key": coin, "symbol": coin[:3]}, 0.0
		for _, e := range of(category) {
			value += lent(e)
		}
		row["value"] = value
		o.mean(row, name, of(category))
		o.mean(row, "borrow_apy", of(cmp.Or(beside, category)))
		rows = append(rows, row)
	}
	return rows
}

// fields writes an answer or the oracle's as one value a path.
func fields(path string, v any, into map[string]any) {
	switch v := v.(type) {
	case object:
		for name, inner := range v {
			fields(path+"."+name, inner, into)
		}
	case []any:
		into[path+".n"] = float64(len(v))
		for i, inner := range v {
			fields(fmt.Sprintf("%s[%d]", path, i), inner, into)
		}
	default:
		into[path] = v
	}
}

// summaryFields are a summary of the fold by fields, without its time.
func summaryFields(t *testing.T, s *eventsv1.DefiSummary) map[string]any {
	t.Helper()
	text, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	var v object
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	delete(v, "time")
	all := map[string]any{}
	fields("", v, all)
	return all
}

// differences names the fields that do not agree; sums may differ in their last digits.
func differences(got, want map[string]any) (paths []string) {
	for path := range maps.Keys(want) {
		if _, ok := got[path]; !ok {
			paths = append(paths, fmt.Sprintf("%s is missing, want %v", path, want[path]))
		}
	}
	for path, g := range got {
		w, ok := want[path]
		a, isA := g.(float64)
		b, isB := w.(float64)
		switch {
		case !ok:
			paths = append(paths, fmt.Sprintf("%s is %v, want none", path, g))
		case isA && isB && math.Abs(a-b) <= 1e-9*max(1, math.Abs(a), math.Abs(b)):
		case g != w:
			paths = append(paths, fmt.Sprintf("%s is %v, want %v", path, g, w))
		}
	}
	slices.Sort(paths)
	return paths
}

// compare folds what fault makes of the log and holds each summary against the oracle, which hears the log itself.
func compare(t *testing.T, minutes []logMinute, fault func(eventsv1.Marked) []eventsv1.Marked) (summaries, checked int, wrong []string) {
	t.Helper()
	fold, o := defi.New(), newOracle()
	var last map[string]any
	var lastAt int64
	for _, m := range minutes {
		seen := logMinute{end: m.end}
		for i, records := range m.topics {
			for _, rec := range records {
				o.hear(rec)
				seen.topics[i] = append(seen.topics[i], fault(rec)...)
			}
		}
		if s := closeMinute(t, fold, seen, false, false).summary(); s != nil {
			summaries++
			last, lastAt = summaryFields(t, s), m.end
		} else if last != nil && m.end-lastAt >= int64(5*time.Minute) {
			wrong = append(wrong, fmt.Sprintf("%s: no summary for five minutes", clock(m.end)))
		}
		want := map[string]any{}
		if s := o.summary(m.end); s != nil {
			fields("", s, want)
		}
		checked += len(want)
		for _, d := range differences(last, want) {
			wrong = append(wrong, clock(m.end)+d)
		}
	}
	return summaries, checked, wrong
}

// apart changes a copy of each rate that counts.
func apart(change func(*eventsv1.RateEntry)) func(eventsv1.Marked) []eventsv1.Marked {
	return func(rec eventsv1.Marked) []eventsv1.Marked {
		if r, ok := rec.(*eventsv1.RateRecord); ok {
			r = proto.Clone(r).(*eventsv1.RateRecord)
			change(r.GetEntry())
			return []eventsv1.Marked{r}
		}
		return []eventsv1.Marked{rec}
	}
}

func TestEveryFieldIsRecomputed(t *testing.T) {
	for _, seed := range streamtest.Seeds(t, 4) {
		summaries, checked, wrong := compare(t, random(seed, 140), func(rec eventsv1.Marked) []eventsv1.Marked { return []eventsv1.Marked{rec} })
		if len(wrong) > 0 {
			t.Fatalf("seed %d: %d of %d fields differ, such as %s", seed, len(wrong), checked, strings.Join(wrong[:min(5, len(wrong))], "; "))
		}
		if summaries < 60 || checked < 15_000 {
			t.Fatalf("seed %d: only %d summaries with %d fields were compared", seed, summaries, checked)
		}
	}
	minutes := random(4, 140)
	protocol := func(change func(p *eventsv1.Protocol) []*eventsv1.Protocol) func(eventsv1.Marked) []eventsv1.Marked {
		return func(rec eventsv1.Marked) (all []eventsv1.Marked) {
			r, ok := rec.(*eventsv1.ReferenceRecord)
			if !ok || r.GetProtocol() == nil {
				return []eventsv1.Marked{rec}
			}
			for _, p := range change(proto.Clone(r.GetProtocol()).(*eventsv1.Protocol)) {
				all = append(all, &eventsv1.ReferenceRecord{Body: &eventsv1.ReferenceRecord_Protocol{Protocol: p}})
			}
			return all
		}
	}
	minutes = minutes[:48]
	for name, fault := range map[string]func(eventsv1.Marked) []eventsv1.Marked{
		"an APR served as APY":           apart(func(e *eventsv1.RateEntry) { e.Apy = e.Apr }),
		"a negative rate clipped":        apart(func(e *eventsv1.RateEntry) { e.Apy = max(0, e.Apy) }),
		"a rate that ended goes on":      apart(func(e *eventsv1.RateEntry) { e.Ended = false }),
		"a rate of a better source":      apart(func(e *eventsv1.RateEntry) { e.Shadowed = "" }),
		"a rate counted beyond its time": apart(func(e *eventsv1.RateEntry) { e.Heard += int64(time.Hour) }),
		"a TVL counted twice": protocol(func(p *eventsv1.Protocol) []*eventsv1.Protocol {
			duplicate := proto.Clone(p).(*eventsv1.Protocol)
			duplicate.Slug += "-duplicate"
			return []*eventsv1.Protocol{p, duplicate}
		}),
		"liquid staking in the total": protocol(func(p *eventsv1.Protocol) []*eventsv1.Protocol {
			p.Category = strings.Replace(p.Category, "Liquid Staking", "Dexs", 1)
			return []*eventsv1.Protocol{p}
		}),
		"what is borrowed counted in all and by chain": protocol(func(p *eventsv1.Protocol) []*eventsv1.Protocol {
			for _, c := range p.Chains {
				if c.Chain == "borrowed" {
					c.Chain = "All-borrowed"
				}
			}
			return []*eventsv1.Protocol{p}
		}),
	} {
		if _, _, wrong := compare(t, minutes, fault); len(wrong) == 0 {
			t.Errorf("%s is not found", name)
		}
	}
}
