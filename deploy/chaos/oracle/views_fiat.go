package oracle

import (
	"fmt"
	"math"
	"math/big"
	"sort"
	"strings"
	"time"

	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// dated is a rate of a day that can be kept.
type dated struct {
	*eventsv1.Fixing
	day   int64 // its beginning
	units float64
}

// rates are the fixings that give a rate of a day.
func (ref Reference) rates() []dated {
	var list []dated
	for _, f := range ref.Fixings {
		at, err := time.Parse("2006-01-02", f.Date)
		digits := f.Rate
		if whole, part, _ := strings.Cut(f.Rate, "."); len(part) > 18 {
			digits = whole + "." + part[:18] // what follows them is cut
		}
		exact, ok := new(big.Rat).SetString(digits)
		if err != nil || !ok || exact.Sign() <= 0 {
			continue
		}
		units, _ := exact.Float64()
		list = append(list, dated{f, at.UnixNano(), units})
	}
	return list
}

// fixing is what a unit of a currency cost on a day.
type fixing struct {
	currency string
	day      int64
	usd      float64
	source   string
}

// fixings are those that give units for a euro, on days with one of the dollar.
func (ref Reference) fixings() []fixing {
	last := newest(ref.rates(), func(f dated) string { return fmt.Sprint(f.Base, "|", f.Quote, "|", f.day) })
	dollars := map[int64]float64{}
	for _, f := range last {
		if f.Base == "EUR" && f.Quote == "USD" {
			dollars[f.day] = f.units
		}
	}
	var list []fixing
	for _, f := range last {
		switch dollar := dollars[f.day]; {
		case f.Base != "EUR" || dollar == 0:
		case f.Quote == "USD":
			list = append(list, fixing{"EUR", f.day, dollar, f.Source})
		default:
			list = append(list, fixing{f.Quote, f.day, dollar / f.units, f.Source})
		}
	}
	return list
}

// pegRates are the fixings, and of currencies without any the middle of what each source gave last for a day in units for a
// dollar.
func (ref Reference) pegRates() []fixing {
	list := ref.fixings()
	fixed := map[string]bool{}
	for _, f := range list {
		fixed[f.currency] = true
	}
	last := map[string]dated{}
	for _, f := range newest(ref.rates(), func(f dated) string {
		return fmt.Sprint(f.Source, "|", f.Base, "|", f.Quote, "|", f.day, "|", f.EventTime)
	}) {
		key := fmt.Sprint(f.Source, "|", f.Quote, "|", f.day)
		if before, ok := last[key]; f.Base == "USD" && !fixed[f.Quote] && (!ok || f.EventTime > before.EventTime) {
			last[key] = f
		}
	}
	type currencyDay struct {
		currency string
		day      int64
	}
	units := map[currencyDay][]float64{}
	for _, f := range last {
		key := currencyDay{f.Quote, f.day}
		units[key] = append(units[key], f.units)
	}
	for key, rates := range units {
		sort.Float64s(rates)
		list = append(list, fixing{key.currency, key.day, 1 / middle(rates), ""})
	}
	return list
}

// FixingsView works out v_fixings.
func (ref Reference) FixingsView() View {
	v := View{Name: "v_fixings", Key: []string{"currency", "day"}}
	for _, f := range ref.fixings() {
		v.Rows = append(v.Rows, Row{"currency": f.currency, "day": instant(f.day), "usd": f.usd, "source": f.source})
	}
	return v
}

// vote is what a source reports that a dollar costs in a currency.
type vote struct {
	source, currency string
	units            float64
	day, event       int64
	blended          []string
	time             int64
	reason           string
}

// votes are the rates by each source, as of the newest of its rates: as published, inverted or by way of another base.
func (ref Reference) votes() []vote {
	rates := newest(ref.rates(), func(f dated) string {
		return fmt.Sprint(f.Source, "|", f.Base, "|", f.Quote, "|", f.day, "|", f.EventTime)
	})
	now := map[[3]string]dated{}
	for _, f := range rates {
		key := [3]string{f.Source, f.Base, f.Quote}
		if b, ok := now[key]; !ok || f.day > b.day || f.day == b.day && f.EventTime > b.EventTime {
			now[key] = f
		}
	}
	type candidate struct {
		vote
		way string
	}
	var all []candidate
	for key, f := range now {
		source, base, quote := key[0], key[1], key[2]
		v := vote{source: source, day: f.day, event: f.EventTime, blended: f.Providers}
		switch {
		case base == quote:
		case base == "USD":
			v.currency, v.units = quote, f.units
			all = append(all, candidate{v, "1"})
		case quote == "USD":
			v.currency, v.units = base, 1/f.units
			all = append(all, candidate{v, "2"})
		default:
			if dollar, ok := now[[3]string{source, base, "USD"}]; ok && dollar.day == f.day {
				v.currency, v.units, v.event = quote, f.units/dollar.units, min(f.EventTime, dollar.EventTime)
				all = append(all, candidate{v, "3" + base})
			}
		}
	}
	sort.Slice(all, func(i, j int) bool { return all[i].way < all[j].way })
	var list []vote
	seen := map[[2]string]bool{}
	for _, c := range all {
		if key := [2]string{c.source, c.currency}; !seen[key] {
			seen[key] = true
			list = append(list, c.vote)
		}
	}
	return list
}

// judge reports which votes count.
func (ref Reference) judge(votes []vote) {
	var now int64
	read, interval := map[string]int64{}, map[string]int64{}
	for _, f := range ref.Fetches {
		now = max(now, f.Started)
		if f.Error == "" {
			read[f.Source] = max(read[f.Source], f.Started)
		}
	}
	for _, f := range ref.rates() {
		now = max(now, f.IngestTime)
	}
	for _, n := range ref.Notices {
		interval[n.Source] = n.Interval
	}
	for i := range votes {
		v := &votes[i]
		lasts := 6 * day
		v.time = v.day
		if v.event != 0 {
			v.time = v.event
			if at := read[v.source]; at/day*day <= v.day+day {
				v.time = max(v.time, at)
			}
			if lasts = 3 * interval[v.source]; lasts == 0 {
				lasts = 45 * minute
			}
		}
		if now > v.time+lasts {
			v.reason = "stale"
		}
	}
	_, currencies := group(pointers(votes), func(v *vote) string { return v.currency })
	for _, list := range currencies {
		single := map[string]bool{}
		for _, v := range list {
			single[v.source] = v.reason == "" && len(v.blended) == 0
		}
		var rates []float64
		for _, v := range list {
			repeats := len(v.blended) > 0
			for _, p := range v.blended {
				repeats = repeats && single[strings.ToLower(p)]
			}
			if v.reason == "" && repeats {
				v.reason = "repeats"
			}
			if v.reason == "" {
				rates = append(rates, v.units)
			}
		}
		for _, v := range list {
			if v.reason == "" && math.Abs(v.units-middle(rates)) > middle(rates)/2 {
				v.reason = "outlier"
			}
		}
	}
}

func pointers[T any](list []T) []*T {
	var all []*T
	for i := range list {
		all = append(all, &list[i])
	}
	return all
}

// FiatView works out v_fiat.
func (ref Reference) FiatView() View {
	v := View{Name: "v_fiat", Key: []string{"currency"}}
	votes := ref.votes()
	ref.judge(votes)
	sort.Slice(votes, func(i, j int) bool { return votes[i].source < votes[j].source })
	currencies, byCurrency := group(votes, func(v vote) string { return v.currency })
	for _, currency := range currencies {
		var rates []float64
		var days, counted, received int64
		freshest := 0.0
		sources, leftOut := []string{}, []Row{}
		for _, v := range byCurrency[currency] {
			days = max(days, v.day)
			if v.time > received || freshest == 0 {
				received, freshest = v.time, v.units
			}
			if v.reason != "" {
				leftOut = append(leftOut, Row{"source": v.source, "reason": v.reason})
				continue
			}
			sources, rates, counted = append(sources, v.source), append(rates, v.units), max(counted, v.time)
		}
		row := Row{"currency": currency, "rate": freshest, "usd": 1 / freshest, "day": instant(days), "time": instant(received), "stale": true, "sources": sources, "left_out": leftOut}
		if len(rates) > 0 {
			rate := middle(rates)
			row["rate"], row["usd"], row["time"], row["stale"] = rate, 1/rate, instant(counted), false
		}
		v.Rows = append(v.Rows, row)
	}
	return v
}
