package apy_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/marketlog/marketlog/processors"
	"github.com/marketlog/marketlog/processors/apy"
	"github.com/marketlog/marketlog/processors/foldtest"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

func TestRates(t *testing.T) {
	root, err := os.OpenRoot("testdata")
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for _, file := range []string{"entries.txt", "attachment.txt", "rollups.txt"} {
		t.Run(file, func(t *testing.T) {
			foldtest.RunCases(t, root, file, func() foldtest.Reader { return &reader{fold: apy.New()} })
		})
	}
}

// reader understands
//
//	rate SOURCE POOL RAW [unit=] [compounding=] [reward=] [category=] [symbol=] [coin=] [project=] [tvl=] [every=] [at=] [past=]
//	project SLUG CATEGORY [name=]       what a source of reference values reports of a project, with _ for blanks
//	source NAME [simulated=]            what a source declares of itself
//	close TIME [entries|rollups|projects|sources]   a minute that ends; what it writes of these, entries and roll-ups by default
//
// A rate is an APY in percent of lending ETH, of the project SOURCE, that is asked for hourly and was received 20 s before the
// minute ends, or at=. A time is a minute of 2026 such as 01-05T10:00; an option that is "-" is empty.
type reader struct {
	fold   processors.MinuteFold
	output strings.Builder
	open   []*eventsv1.ReferenceRecord
	n      int64
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
			options[name] = strings.TrimPrefix(value, "-_")
			if value == "-" {
				options[name] = ""
			}
		} else {
			words = append(words, field)
		}
	}
	option := func(name, otherwise string) string {
		if value, ok := options[name]; ok {
			return value
		}
		return otherwise
	}
	switch words[0] {
	case "rate":
		every, err := time.ParseDuration(option("every", "1h"))
		if err != nil {
			return err
		}
		received := int64(0)
		if at, ok := options["at"]; ok {
			if received, err = minute(at); err != nil {
				return err
			}
		}
		reported := &eventsv1.Rate{
			Source: words[1], Pool: words[2], Raw: words[3], RawUnit: option("unit", "apy_percent"), Compounding: option("compounding", ""), Reward: option("reward", ""),
			Category: option("category", "lending"), Symbol: option("symbol", "ETH"), CoinId: option("coin", ""), Project: option("project", words[1]), TvlUsd: option("tvl", ""),
			Interval: int64(every), IngestTime: received, Past: options["past"] == "yes",
		}
		r.open = append(r.open, &eventsv1.ReferenceRecord{Body: &eventsv1.ReferenceRecord_Rate{Rate: reported}})
	case "project":
		r.open = append(r.open, &eventsv1.ReferenceRecord{Body: &eventsv1.ReferenceRecord_Protocol{Protocol: &eventsv1.Protocol{
			Source: "defillama", Slug: words[1], Name: option("name", words[1]), Category: strings.ReplaceAll(words[2], "_", " ")}}})
	case "source":
		r.open = append(r.open, &eventsv1.ReferenceRecord{Body: &eventsv1.ReferenceRecord_Notice{Notice: &eventsv1.SourceNotice{
			Source: words[1], Simulated: options["simulated"] == "yes"}}})
	case "close":
		at, err := minute(words[1])
		if err != nil {
			return err
		}
		r.close(at, words[2:])
	default:
		return fmt.Errorf("%q is no command", words[0])
	}
	return nil
}

func minute(s string) (int64, error) {
	at, err := time.Parse("2006-01-02T15:04", "2026-"+s)
	return at.UnixNano(), err
}

func (r *reader) close(minute int64, only []string) {
	for _, rec := range r.open {
		if rate := rec.GetRate(); rate != nil && rate.IngestTime == 0 {
			rate.IngestTime = minute - int64(20*time.Second)
		}
		r.n++
		r.fold.Take(minute, processors.Input{Offset: r.n}, rec)
	}
	r.open = nil
	var out processors.Outputs
	out.Begin(processors.Input{Offset: minute})
	r.fold.Close(minute, &out)
	if len(only) == 0 {
		only = []string{"entries", "rollups"}
	}
	shows := func(what string) bool { return strings.Contains(strings.Join(only, " "), what) }
	for _, o := range out.List {
		rec := o.Record.(*eventsv1.RateRecord)
		switch body := rec.Body.(type) {
		case *eventsv1.RateRecord_Entry:
			if shows("entries") {
				fmt.Fprintln(&r.output, entry(body.Entry))
			}
		case *eventsv1.RateRecord_Rollup:
			if shows("rollups") {
				fmt.Fprintln(&r.output, rollup(body.Rollup))
			}
		case *eventsv1.RateRecord_Project:
			if shows("projects") {
				fmt.Fprintf(&r.output, "project %s %s %q\n", body.Project.Slug, body.Project.Name, body.Project.Category)
			}
		case *eventsv1.RateRecord_Source:
			if shows("sources") {
				fmt.Fprintf(&r.output, "source %s simulated=%t\n", body.Source.Source, body.Source.Simulated)
			}
		}
	}
}

func entry(e *eventsv1.RateEntry) string {
	var s strings.Builder
	fmt.Fprintf(&s, "%s %s %s of %s: apr=%s apy=%s", moment(e.Time), e.Source, e.Pool, of(e.CoinId, e.Symbol, e.Category), figure(e.Apr), figure(e.Apy))
	if e.RewardApy != nil {
		s.WriteString(" reward=" + figure(*e.RewardApy))
	}
	if e.TvlUsd != nil {
		s.WriteString(" tvl=" + figure(*e.TvlUsd))
	}
	if e.Provider != e.Source {
		s.WriteString(" by=" + e.Provider)
	}
	if e.ProviderName != "" {
		s.WriteString(" called=" + e.ProviderName)
	}
	fmt.Fprintf(&s, " heard=%s #%d", time.Unix(0, e.Heard).UTC().Format("15:04:05"), e.Offset)
	if e.Unattached != "" {
		s.WriteString(" " + e.Unattached)
	}
	if e.Shadowed != "" {
		s.WriteString(" shadowed=" + e.Shadowed)
	}
	if e.Simulated {
		s.WriteString(" simulated")
	}
	if e.Ended {
		s.WriteString(" ended")
	}
	return s.String()
}

func rollup(r *eventsv1.RateRollup) string {
	s := fmt.Sprintf("%s+%s %s %s of %s: o=%s h=%s l=%s c=%s mean=%s n=%d", moment(r.Start), time.Duration(r.Interval)*time.Second, r.Source, r.Pool, of(r.CoinId, r.Symbol, r.Category),
		figure(r.Open), figure(r.High), figure(r.Low), figure(r.Close), figure(r.Mean), r.N)
	if r.TvlUsd != nil {
		s += " tvl=" + figure(*r.TvlUsd)
	}
	if r.Shadowed != "" {
		s += " shadowed=" + r.Shadowed
	}
	if r.Simulated {
		s += " simulated"
	}
	return s
}

// of is a coin, or the symbol of one that is not known, and a category.
func of(coin, symbol, category string) string {
	if coin == "" {
		coin = "?" + symbol
	}
	if category == "" {
		category = "?"
	}
	return coin + " " + category
}

func figure(f float64) string { return strconv.FormatFloat(f, 'g', 8, 64) }

func moment(at int64) string { return time.Unix(0, at).UTC().Format("01-02T15:04") }

// What this version of the fold derives stays as it is.
func TestFrozenRates(t *testing.T) {
	root, err := os.OpenRoot("testdata")
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	foldtest.Frozen(t, root, apy.Minutes(), func() []foldtest.LogMinute { return random(3, 90) })
}
