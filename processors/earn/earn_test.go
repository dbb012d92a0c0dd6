package earn_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/marketlog/marketlog/processors"
	"github.com/marketlog/marketlog/processors/earn"
	"github.com/marketlog/marketlog/processors/foldtest"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

func TestEarn(t *testing.T) {
	root, err := os.OpenRoot("testdata")
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for _, file := range []string{"products.txt", "terms.txt", "closing.txt", "fixings.txt"} {
		t.Run(file, func(t *testing.T) {
			foldtest.RunCases(t, root, file, func() foldtest.Reader { return &reader{fold: earn.New(schemas.Coins())} })
		})
	}
}

// reader understands
//
//	rate PROVIDER COIN APY [NAME=...]               an entry of the minute that closes next, received then unless heard= is given
//	close TIME [variants|changes|fixings|quotes]    a minute that ends; what it writes of these, all but quotes by default
//
// where a time is a minute of 2026 such as 01-05T10:00. Without source= the provider reports its own rate, once an hour, in the
// pool that is named after the coin.
type reader struct {
	fold   processors.MinuteFold
	output strings.Builder
	open   []*eventsv1.RateEntry
}

func (r *reader) Output() string {
	output := r.output.String()
	r.output.Reset()
	return output
}

func (r *reader) Read(line string) error {
	words, options := []string{}, map[string]string{}
	for _, field := range strings.Fields(line) {
		if name, value, ok := strings.Cut(field, "="); ok {
			options[name] = value
		} else {
			words = append(words, field)
		}
	}
	switch {
	case words[0] == "rate" && len(words) == 4:
		return r.rate(words, options)
	case words[0] == "close" && len(words) > 1:
		minute, err := parseTime(words[1])
		if err != nil {
			return err
		}
		r.close(minute, words[2:])
		return nil
	}
	return fmt.Errorf("%q is no command", line)
}

func parseTime(text string) (int64, error) {
	at, err := time.Parse("2006-01-02T15:04", "2026-"+text)
	return at.UnixNano(), err
}

func (r *reader) rate(words []string, options map[string]string) error {
	apy, err := strconv.ParseFloat(words[3], 64)
	if err != nil {
		return err
	}
	reported := &eventsv1.Rate{RawUnit: "apy_percent", Interval: int64(time.Hour)}
	e := &eventsv1.RateEntry{
		Provider: words[1], Source: words[1], Category: schemas.RateLending, CoinId: words[2], Symbol: strings.ToUpper(words[2]), Pool: words[2], Apr: apy, Apy: apy, Said: reported,
	}
	if coin, ok := schemas.Coins().ByID(words[2]); ok {
		e.Symbol = coin.Symbol
	}
	texts := map[string]*string{
		"source": &e.Source, "category": &e.Category, "pool": &e.Pool, "term": &e.Term, "shadowed": &e.Shadowed, "unattached": &e.Unattached, "chain": &e.Chain,
		"min": &reported.MinAmount, "cap": &reported.MaxAmount, "payout": &reported.Payout, "unit": &reported.RawUnit, "compounding": &reported.Compounding,
	}
	numbers := map[string]**float64{"tvl": &e.TvlUsd, "reward": &e.RewardApy, "lockup": &reported.LockupDays, "notice": &reported.NoticeDays}
	flags := map[string]*bool{"ended": &e.Ended, "promo": &reported.Promo, "simulated": &e.Simulated}
	for name, value := range options {
		switch {
		case texts[name] != nil:
			*texts[name] = value
		case numbers[name] != nil:
			n, err := strconv.ParseFloat(value, 64)
			if err != nil {
				return err
			}
			*numbers[name] = &n
		case flags[name] != nil:
			*flags[name] = value == "yes"
		case name == "heard":
			if e.Heard, err = parseTime(value); err != nil {
				return err
			}
		case name == "every":
			every, err := time.ParseDuration(value)
			if err != nil {
				return err
			}
			reported.Interval = int64(every)
		case name == "tiers": // 0-100@5,100-@3
			for tier := range strings.SplitSeq(value, ",") {
				bounds, raw, _ := strings.Cut(tier, "@")
				from, to, _ := strings.Cut(bounds, "-")
				reported.Tiers = append(reported.Tiers, &eventsv1.RateTier{From: from, To: to, Raw: raw})
			}
		case name == "served":
			reported.Served = strings.Split(value, ",")
		case name == "refused":
			reported.Refused = strings.Split(value, ",")
		default:
			return fmt.Errorf("%q is no option", name)
		}
	}
	r.open = append(r.open, e)
	return nil
}

func (r *reader) close(minute int64, only []string) {
	for _, e := range r.open {
		if e.Heard == 0 {
			e.Heard = minute
		}
		e.Time = minute
		r.fold.Take(minute, processors.Input{}, &eventsv1.RateRecord{Body: &eventsv1.RateRecord_Entry{Entry: e}})
	}
	r.open = nil
	var out processors.Outputs
	out.Begin(processors.Input{Offset: minute})
	r.fold.Close(minute, &out)
	shows := func(what string) bool {
		return len(only) == 0 && what != "quotes" || strings.Contains(strings.Join(only, " "), what)
	}
	for _, o := range out.List {
		rec := o.Record.(*eventsv1.EarnRecord)
		switch {
		case rec.GetVariant() != nil && shows("variants"):
			fmt.Fprintln(&r.output, variantLine(rec.GetVariant()))
		case rec.GetChange() != nil && shows("changes"):
			c := rec.GetChange()
			fmt.Fprintf(&r.output, "%s %s [%s] %s: %q -> %q\n", moment(c.Time), c.ProductId, c.VariantId, c.Field, c.Before, c.After)
		case rec.GetFixing() != nil && shows("fixings"):
			x := rec.GetFixing()
			fmt.Fprintf(&r.output, "fixing %s %s median=%s%s providers=%d tvl=%s written %s\n", x.Date, x.Segment, figure(x.Median), optional("weighted", x.TvlWeighted),
				x.ProviderCount, figure(x.TvlUsd), moment(x.Time))
			if !shows("quotes") {
				continue
			}
			for _, q := range x.Quotes {
				fmt.Fprintf(&r.output, "  %s %s %s tvl=%s of %d\n", q.Provider, q.Segment, figure(q.Apy), figure(q.TvlUsd), q.Variants)
			}
		}
	}
}

func variantLine(v *eventsv1.EarnVariant) string {
	var s strings.Builder
	fmt.Fprintf(&s, "%s %s [%s] %s %s %s", moment(v.Time), v.ProductId, v.VariantId, v.Segment, v.Status, figure(v.Apy))
	if v.BaseApy != v.Apy || v.MaxApy != v.Apy {
		fmt.Fprintf(&s, " from %s to %s", figure(v.BaseApy), figure(v.MaxApy))
	}
	s.WriteString(optional("tvl", v.TvlUsd))
	for _, field := range schemas.EarnFields[1:] {
		if term := schemas.EarnTerm(v, field); term != "" {
			fmt.Fprintf(&s, " %s=%q", field, term)
		}
	}
	fmt.Fprintf(&s, " confidence=%s heard %s", figure(v.Confidence), moment(v.Heard))
	return s.String()
}

func optional(name string, f *float64) string {
	if f == nil {
		return ""
	}
	return " " + name + "=" + figure(*f)
}

func figure(f float64) string { return strconv.FormatFloat(f, 'g', 8, 64) }

func moment(at int64) string { return time.Unix(0, at).UTC().Format("01-02T15:04") }

// What this version of the fold derives stays as it is.
func TestFrozenEarn(t *testing.T) {
	root, err := os.OpenRoot("testdata")
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	foldtest.Frozen(t, root, earn.Minutes(schemas.Coins()), func() []foldtest.LogMinute {
		var minutes []foldtest.LogMinute
		for _, m := range random(3, 200) {
			var input []foldtest.LogRecord
			for _, e := range m.entries {
				input = append(input,
					foldtest.LogRecord{Record: &eventsv1.RateRecord{Body: &eventsv1.RateRecord_Entry{Entry: e}}})
			}
			minutes = append(minutes, foldtest.LogMinute{End: m.end, Inputs: [][]foldtest.LogRecord{input}})
		}
		return minutes
	})
}
