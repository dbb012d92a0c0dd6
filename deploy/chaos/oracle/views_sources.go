package oracle

import (
	"fmt"
	"sort"
	"strings"

	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// requests are the fetches, each once: of the same the last word counts.
func (ref Reference) requests() []*eventsv1.Fetch {
	return newest(ref.Fetches, func(f *eventsv1.Fetch) string { return fmt.Sprint(f.Source, "|", f.Started, "|", f.Feed, "|", f.Url) })
}

// FetchesView works out v_fetches.
func (ref Reference) FetchesView() View {
	v := View{Name: "v_fetches", Key: []string{"source", "started", "feed", "url"}}
	for _, f := range ref.requests() {
		v.Rows = append(v.Rows, Row{
			"source": f.Source, "started": instant(f.Started), "feed": f.Feed, "url": f.Url, "status": f.Status, "ok": f.Error == "", "error": f.Error,
			"duration_ms": float64(f.Duration) / 1e6, "readings": f.Rows,
		})
	}
	return v
}

// SourcesView works out v_sources.
func (ref Reference) SourcesView(prices []*eventsv1.Price) View {
	v := View{Name: "v_sources", Key: []string{"source"}}
	_, requests := group(ref.requests(), (*eventsv1.Fetch).GetSource)
	var now, priced int64
	for _, f := range ref.Fetches {
		now = max(now, f.Started)
	}
	for _, p := range prices {
		priced = max(priced, p.Time)
	}
	received := map[string]int64{}
	for _, p := range prices {
		for _, i := range p.Inputs {
			if p.Time > priced-15*minute {
				received[i.Provider] = max(received[i.Provider], i.QuoteHeard, i.LastHeard)
			}
		}
	}
	for _, n := range newest(ref.Notices, (*eventsv1.SourceNotice).GetSource) {
		row := Row{
			"source": n.Source, "name": n.Name, "kinds": texts(n.Kinds), "interval_seconds": float64(n.Interval) / 1e9, "moves_seconds": float64(n.Moves) / 1e9, "url": n.Url, "license": n.License, "terms": n.Terms,
			"attribution": n.Attribution, "simulated": n.Simulated, "last_heard": known(received[n.Source]),
		}
		status := health(row, requests[n.Source], now)
		kind, since := standstill(n, requests[n.Source], now)
		row["standstill"], row["standstill_since"] = kind, known(since)
		if kind != "" && status == "healthy" {
			status = "degraded"
		}
		if n.Interval == 0 {
			status = "down"
			if at := received[n.Source]; at != 0 && at >= priced-2*minute {
				status = "healthy"
			} else if at != 0 && at >= priced-10*minute {
				status = "degraded"
			}
		}
		if !n.Enabled {
			status = "disabled"
		}
		row["status"] = status
		v.Rows = append(v.Rows, row)
	}
	return v
}

// health writes how the requests of the week before now went, and says what that makes of a source.
func health(row Row, requests []*eventsv1.Fetch, now int64) (status string) {
	sort.Slice(requests, func(i, j int) bool { return requests[i].Started < requests[j].Started })
	var week, weekGood, day1, dayGood, failed uint64
	var attempt, success, failure, readings int64
	var failedWith string
	var took []float64
	for _, f := range requests {
		if f.Started <= now-7*day {
			continue
		}
		recent := f.Started > now-day
		week, attempt = week+1, f.Started
		if recent {
			day1++
			readings += f.Rows
		}
		if f.Error != "" {
			failed++
			failedWith, failure = f.Error, f.Started
			continue
		}
		failed, success = 0, f.Started
		weekGood++
		if recent {
			dayGood++
			took = append(took, float64(f.Duration)/1e6)
		}
	}
	sort.Float64s(took)
	for column, value := range map[string]any{
		"requests_24h": day1, "last_attempt": known(attempt), "last_success": known(success), "consecutive_failures": failed, "last_error": failedWith, "last_error_at": known(failure),
		"readings_24h": readings, "success_rate_24h": share(dayGood, day1), "success_rate_7d": share(weekGood, week), "latency_p50_ms": ranked(took, 50), "latency_p95_ms": ranked(took, 95),
	} {
		row[column] = value
	}
	switch {
	case weekGood == 0 || failed >= 3:
		return "down"
	case failed > 0 || float64(dayGood) < 0.95*float64(day1):
		return "degraded"
	}
	return "healthy"
}

// standstill reports whether a source served nothing, or the same, for too long, and since when.
func standstill(n *eventsv1.SourceNotice, requests []*eventsv1.Fetch, now int64) (what string, since int64) {
	type address struct {
		first, held int64
		digest      uint64 // of the last answer that held a value
	}
	addresses := map[string]*address{}
	var firstReceived, lastReceived, lastFilled, firstCompared, lastCompared, lastMoved int64
	for _, f := range requests {
		if f.Started <= now-7*day || f.Error != "" {
			continue
		}
		if firstReceived == 0 {
			firstReceived = f.Started
		}
		lastReceived = f.Started
		a := addresses[f.Feed+"|"+f.Url]
		if a == nil {
			a = &address{}
			addresses[f.Feed+"|"+f.Url] = a
		}
		if f.Status != 304 {
			a.held = f.Rows
		}
		if a.held > 0 {
			lastFilled = f.Started
		}
		if a.digest != 0 && (f.Told != 0 || f.Status == 304) {
			if firstCompared == 0 || a.first < firstCompared {
				firstCompared = a.first
			}
			lastCompared = f.Started
			if f.Told != 0 && f.Told != a.digest {
				lastMoved = f.Started
			}
		}
		if f.Told != 0 {
			if a.digest == 0 {
				a.first = f.Started
			}
			a.digest = f.Told
		}
	}
	stood, held := lastMoved, lastFilled
	if stood == 0 {
		stood = firstCompared
	}
	if held == 0 {
		held = firstReceived
	}
	switch {
	case lastReceived != 0 && n.Interval > 0 && lastReceived-held >= 3*n.Interval:
		return "empty", held
	case lastCompared != 0 && n.Moves > 0 && lastCompared-stood >= 3*n.Moves:
		return "unmoved", stood
	}
	return "", 0
}

func share(part, of uint64) any {
	if of == 0 {
		return nil
	}
	return float64(part) / float64(of)
}

// ranked is the percentile of sorted values by nearest rank: the least of them that so many percent do not exceed.
func ranked(sorted []float64, percent int) any {
	for i, f := range sorted {
		if 100*(i+1) >= percent*len(sorted) {
			return f
		}
	}
	return nil
}

// Mappings works out v_mappings.
func (m Market) Mappings(ref Reference, ticks []*eventsv1.ResolvedTick) View {
	v := View{Name: "v_mappings", Key: []string{"source", "symbol", "coin_id", "method", "valid_from"}}
	symbols := map[string]int{}
	for _, c := range m.Coins {
		symbols[c.Symbol]++
	}
	bases, byBase := group(ticks, func(t *eventsv1.ResolvedTick) string { return t.Tick.Venue + "|" + t.Tick.Base })
	for _, base := range bases {
		first, last, end := map[string]int64{}, map[string]int64{}, int64(0)
		for _, t := range byBase[base] {
			at := t.Tick.IngestTime
			if t.CoinId == "" {
				continue
			}
			if first[t.CoinId] == 0 || at < first[t.CoinId] {
				first[t.CoinId] = at
			}
			last[t.CoinId] = max(last[t.CoinId], at)
			end = max(end, at)
		}
		venue, symbol, _ := strings.Cut(base, "|")
		for id := range first {
			row := Row{"source": venue, "symbol": symbol, "coin_id": id, "method": "unique_symbol", "confidence": 90, "valid_from": instant(first[id]), "valid_to": nil}
			if last[id] < end {
				row["valid_to"] = instant(last[id])
			}
			switch known := m.Coins[id].Symbol; {
			case strings.ToUpper(symbol) != known:
				row["method"], row["confidence"] = "exchange_mapping", 95
			case symbols[known] > 1:
				row["method"], row["confidence"] = "coin_database", 80
			}
			v.Rows = append(v.Rows, row)
		}
	}
	words := newest(ref.Overrides, func(o *eventsv1.SymbolOverride) string { return fmt.Sprint(o.Source, "|", o.Symbol, "|", o.Time) })
	for _, o := range words {
		if o.CoinId == "" {
			continue
		}
		var until int64
		for _, next := range words {
			if next.Source == o.Source && next.Symbol == o.Symbol && next.Time > o.Time && (until == 0 || next.Time < until) {
				until = next.Time
			}
		}
		v.Rows = append(v.Rows, Row{"source": o.Source, "symbol": o.Symbol, "coin_id": o.CoinId, "method": "manual_override", "confidence": 100, "valid_from": instant(o.Time), "valid_to": known(until)})
	}
	return v
}
