package foldtest

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/marketlog/marketlog/processors"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// describe prints one output as a line, a price in one more for each input.
func describe(o processors.Output, pulses bool) string {
	if p := o.Record.GetPulse(); p != nil {
		if !pulses || o.Topic == schemas.TopicTicksRawDead {
			return ""
		}
		return fmt.Sprintf("pulse %s watermark %s", clock(p.Now), clock(p.Watermark))
	}
	switch rec := o.Record.(type) {
	case *eventsv1.ResolvedRecord:
		switch {
		case rec.GetTick() != nil:
			return tick(rec.GetTick())
		case rec.GetGap() != nil:
			g := rec.GetGap()
			return fmt.Sprintf("gap %s %s %s from %s to %s missed %d", g.Venue, cmp.Or(g.Symbol, "-"), g.Reason, clock(g.FromTime), clock(g.ToTime), g.Missed)
		default:
			return control(rec.GetControl())
		}
	case *eventsv1.PriceRecord:
		if rec.GetPrice() == nil {
			return control(rec.GetControl())
		}
		return price(rec.GetPrice())
	case *eventsv1.CandleRecord:
		switch {
		case rec.GetCandle() != nil:
			return candle(rec.GetCandle())
		case rec.GetVenueCandle() != nil:
			return venueCandle(rec.GetVenueCandle())
		default:
			return control(rec.GetControl())
		}
	case *eventsv1.QuoteRecord:
		return rate(rec.GetRate())
	case *eventsv1.DeadRecord:
		l := rec.Letter
		return fmt.Sprintf("dead %s %s: %s (offset %d, %d bytes)", cmp.Or(l.Source, "-"), l.Reason, l.Detail, l.Offset, len(l.Payload))
	default:
		return fmt.Sprintf("%T", o.Record)
	}
}

func tick(r *eventsv1.ResolvedTick) string {
	t := r.Tick
	s := ""
	switch t.Kind {
	case eventsv1.TickKind_TICK_KIND_TRADE:
		s = fmt.Sprintf("trade %s %s", t.Price, t.Size)
	case eventsv1.TickKind_TICK_KIND_QUOTE:
		s = fmt.Sprintf("quote %s %s", cmp.Or(t.Bid, "-"), cmp.Or(t.Ask, "-"))
	case eventsv1.TickKind_TICK_KIND_TICKER:
		s = fmt.Sprintf("ticker %s", cmp.Or(t.Last, "-"))
	}
	s = fmt.Sprintf("%s %s %s/%s %s", t.Venue, t.Symbol, cmp.Or(r.CoinId, "-"), cmp.Or(r.QuoteId, "-"), s)
	switch {
	case r.QuoteId == schemas.USD:
		s += " rate " + number(r.Rate)
	case r.Rate != 0:
		s += fmt.Sprintf(" rate %s of %s at %d", number(r.Rate), clock(r.RateTime), r.RateOffset)
	}
	if r.Flags != 0 {
		s += " " + schemas.Flag(r.Flags).String()
	}
	return s
}

func price(p *eventsv1.Price) string {
	var s strings.Builder
	fmt.Fprintf(&s, "price %s %s ", p.CoinId, clock(p.Time))
	if p.Reason != "" {
		fmt.Fprintf(&s, "%s, rejected %d", p.Reason, p.Rejected)
	} else {
		fmt.Fprintf(&s, "%s (%s to %s) of %d, rejected %d, source %s", number(p.Price), number(p.Min), number(p.Max), p.Accepted, p.Rejected, p.Source)
	}
	if p.Volume24H != 0 {
		fmt.Fprintf(&s, ", volume %s", number(p.Volume24H))
	}
	for _, in := range p.Inputs {
		fmt.Fprintf(&s, "\n  %s %s", in.Provider, in.Symbol)
		if in.Basis != "" {
			fmt.Fprintf(&s, " %s by %s", number(in.Value), in.Basis)
		}
		if in.PriceUsd != 0 && in.PriceUsd != in.Value {
			fmt.Fprintf(&s, " = %s USD", number(in.PriceUsd))
		}
		if in.Reason != "" {
			fmt.Fprintf(&s, " %s", in.Reason)
		}
		if in.Reason == schemas.InputOutlier {
			fmt.Fprintf(&s, " %+.2f%%", in.DeviationPct)
		}
	}
	return s.String()
}

func rate(r *eventsv1.QuoteRate) string {
	s := fmt.Sprintf("rate %s %s of %s by %s", r.QuoteId, number(r.Rate), clock(r.Time), r.Method)
	for _, in := range r.Inputs {
		s += fmt.Sprintf(", %s %s %s", in.Provider, in.Symbol, cmp.Or(in.Reason, number(in.PriceUsd)))
	}
	return s
}

func candle(c *eventsv1.Candle) string {
	s := fmt.Sprintf("candle %s %s o=%s h=%s l=%s c=%s v=%s usd=%s n=%d", c.CoinId, minute(c.Start),
		number(c.Open), number(c.High), number(c.Low), number(c.Close), c.Volume, number(c.VolumeUsd), c.Trades)
	if c.Volume24H != 0 {
		s += fmt.Sprintf(" day=%s of %d", number(c.Volume24H), c.Accepted)
	}
	if c.Simulated {
		s += " simulated"
	}
	return s
}

func venueCandle(c *eventsv1.VenueCandle) string {
	return fmt.Sprintf("venue %s %s %s/%s %s o=%s h=%s l=%s c=%s v=%s n=%d", c.Venue, c.Symbol, c.CoinId, cmp.Or(c.QuoteId, "-"),
		minute(c.Start), c.Open, c.High, c.Low, c.Close, c.Volume, c.Trades)
}

func control(c *eventsv1.Control) string {
	return fmt.Sprintf("control %s %s %d", c.GetAction(), c.GetView(), c.GetGeneration())
}

func number(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }

func clock(at int64) string {
	if at == 0 {
		return "-"
	}
	return time.Unix(0, at).UTC().Format("15:04:05.999999999")
}

func minute(at int64) string { return time.Unix(0, at).UTC().Format("15:04") }
