package markets_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/marketlog/marketlog/processors"
	"github.com/marketlog/marketlog/processors/foldtest"
	"github.com/marketlog/marketlog/processors/markets"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

func TestMarkets(t *testing.T) {
	root, err := os.OpenRoot("testdata")
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for _, file := range []string{"prices.txt", "changes.txt", "supplies.txt", "ranks.txt", "summary.txt"} {
		t.Run(file, func(t *testing.T) {
			foldtest.RunCases(t, root, file, func() foldtest.Reader {
				return &reader{fold: markets.New(schemas.Coins())}
			})
		})
	}
}

// reader understands
//
//	candle TIME COIN CLOSE [high= low= volume= accepted= simulated=]   a closed minute that ends then
//	reported TIME SOURCE COIN [NUMBER=...]                            what a source reports, read then; at= is its own time
//	close TIME [rows|summary|states]                                  a minute that ends; what it writes of these, all by default
//
// where a time is a minute of 2026 such as 01-05T10:00.
type reader struct {
	fold   processors.MinuteFold
	output strings.Builder
	open   []eventsv1.Marked
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
	at, err := time.Parse("2006-01-02T15:04", "2026-"+words[1])
	if err != nil {
		return err
	}
	switch words[0] {
	case "candle":
		return r.candle(at.UnixNano(), words[2], words[3], options)
	case "reported":
		return r.reported(at.UnixNano(), words[2], words[3], options)
	case "close":
		r.close(at.UnixNano(), words[2:])
		return nil
	}
	return fmt.Errorf("%q is no command", words[0])
}

func (r *reader) candle(end int64, coin, price string, options map[string]string) error {
	c := &eventsv1.Candle{CoinId: coin, Start: end - int64(time.Minute), Simulated: options["simulated"] == "yes"}
	c.Close, _ = strconv.ParseFloat(price, 64)
	c.Open, c.High, c.Low = c.Close, c.Close, c.Close
	for name, value := range options {
		f, err := strconv.ParseFloat(value, 64)
		switch {
		case name == "simulated":
		case err != nil:
			return err
		case name == "high":
			c.High = f
		case name == "low":
			c.Low = f
		case name == "volume":
			c.Volume24H = f
		case name == "accepted":
			c.Accepted = uint32(f)
		default:
			return fmt.Errorf("%q is no option", name)
		}
	}
	r.open = append(r.open, &eventsv1.CandleRecord{Body: &eventsv1.CandleRecord_Candle{Candle: c}})
	return nil
}

func (r *reader) reported(ingest int64, source, coin string, options map[string]string) error {
	m := &eventsv1.CoinMarket{Source: source, SourceId: coin, Symbol: coin[:1] + "x", Name: coin, IngestTime: ingest}
	if known, ok := schemas.Coins().ByID(coin); ok {
		m.Symbol, m.Name = known.Symbol, known.Name
	}
	if source == "coinpaprika" { // which spells its ids so
		m.SourceId = strings.ToLower(m.Symbol + "-" + strings.ReplaceAll(m.Name, " ", "-"))
	}
	fields := map[string]*string{
		"price": &m.Price, "cap": &m.MarketCap, "volume": &m.Volume24H, "high": &m.High24H, "low": &m.Low24H, "supply": &m.CirculatingSupply,
		"total": &m.TotalSupply, "max": &m.MaxSupply, "ath": &m.Ath, "atl": &m.Atl, "1h": &m.Change1H, "24h": &m.Change24H, "7d": &m.Change7D, "1y": &m.Change1Y,
	}
	for name, value := range options {
		switch field := fields[name]; {
		case field != nil:
			*field = value
		case name == "at":
			at, err := time.Parse("2006-01-02T15:04", "2026-"+value)
			if err != nil {
				return err
			}
			m.EventTime = at.UnixNano()
		default:
			return fmt.Errorf("%q is no option", name)
		}
	}
	r.open = append(r.open, &eventsv1.ReferenceRecord{Body: &eventsv1.ReferenceRecord_CoinMarket{CoinMarket: m}})
	return nil
}

func (r *reader) close(minute int64, only []string) {
	for _, rec := range r.open {
		r.fold.Take(minute, processors.Input{}, rec)
	}
	r.open = nil
	var out processors.Outputs
	out.Begin(processors.Input{Offset: minute})
	r.fold.Close(minute, &out)
	shows := func(what string) bool { return len(only) == 0 || strings.Contains(strings.Join(only, " "), what) }
	for _, o := range out.List {
		rec := o.Record.(*eventsv1.MarketRecord)
		switch {
		case rec.GetMarket() != nil:
			if shows("rows") {
				fmt.Fprintln(&r.output, row(rec.GetMarket()))
			}
			if rec.State != nil && shows("states") {
				s := rec.State
				fmt.Fprintf(&r.output, "state %s: %d sources, %d five minutes, %d hours, %d days\n", o.Key, len(s.Sources), len(s.FiveMinutes), len(s.Hours), len(s.Days))
			}
		case rec.GetSummary() != nil && shows("summary"):
			fmt.Fprint(&r.output, summary(rec.GetSummary()))
		}
	}
}

func row(m *eventsv1.Market) string {
	var s strings.Builder
	fmt.Fprintf(&s, "%s %s %s", m.CoinId, m.Symbol, moment(m.Time))
	if m.PriceSource == "" {
		return s.String() + " no price"
	}
	fmt.Fprintf(&s, " %s of %s at %s", figure(m.Price), m.PriceSource, moment(m.PriceTime))
	if m.Rank != 0 {
		fmt.Fprintf(&s, " #%d", m.Rank)
	}
	optional := func(name string, f *float64) {
		if f != nil {
			fmt.Fprintf(&s, " %s=%s", name, figure(*f))
		}
	}
	optional("cap", m.MarketCap)
	optional("diluted", m.FullyDilutedValuation)
	optional("volume", m.Volume24H)
	optional("high", m.High24H)
	optional("low", m.Low24H)
	optional("rise", m.PriceChange24H)
	for _, c := range []struct {
		name string
		f    *float64
	}{{"1h", m.Change1H}, {"24h", m.Change24H}, {"7d", m.Change7D}, {"14d", m.Change14D}, {"30d", m.Change30D}, {"60d", m.Change60D}, {"200d", m.Change200D}, {"1y", m.Change1Y}} {
		optional(c.name, c.f)
	}
	if len(m.OwnChanges) > 0 {
		s.WriteString(" own=" + strings.Join(m.OwnChanges, ","))
	}
	optional("caprise", m.MarketCapChange24H)
	optional("ath", m.Ath)
	optional("atl", m.Atl)
	optional("supply", m.CirculatingSupply)
	optional("total", m.TotalSupply)
	optional("max", m.MaxSupply)
	if m.SupplySource != "" {
		fmt.Fprintf(&s, " of %s at %s", m.SupplySource, moment(m.SupplyTime))
	}
	if m.Simulated {
		s.WriteString(" simulated")
	}
	return s.String()
}

func summary(m *eventsv1.Summary) string {
	var s strings.Builder
	fmt.Fprintf(&s, "summary %s cap=%s volume=%s btc=%s%% eth=%s%% coins=%d markets=%d stable=%s (%s%%)", moment(m.Time), figure(m.TotalMarketCap), figure(m.TotalVolume24H),
		figure(m.BtcDominance), figure(m.EthDominance), m.ActiveCoins, m.ActiveMarkets, figure(m.StablecoinMarketCap), figure(m.StablecoinDominance))
	if m.MarketCapChange24H != nil {
		s.WriteString(" capchange=" + figure(*m.MarketCapChange24H))
	}
	if m.VolumeChange24H != nil {
		s.WriteString(" volumechange=" + figure(*m.VolumeChange24H))
	}
	if m.Simulated {
		s.WriteString(" simulated")
	}
	s.WriteString("\n  shares")
	for _, d := range m.Dominance {
		fmt.Fprintf(&s, " %s=%s", d.Symbol, figure(d.Percent))
	}
	for _, g := range m.Sentiment {
		fmt.Fprintf(&s, "\n  %s +%d -%d =%d ratio %s %s mean %s median %s", g.Range, g.Positive, g.Negative, g.Neutral, figure(g.Ratio), g.Classification,
			figure(g.AverageChange24H), figure(g.MedianChange24H))
	}
	if m.FearGreed != nil {
		fmt.Fprintf(&s, "\n  fear and greed %d", m.FearGreed.Value)
		for _, c := range m.FearGreed.Components {
			fmt.Fprintf(&s, " %s=%s", c.Name, figure(c.Value))
		}
	}
	return s.String() + "\n"
}

func figure(f float64) string { return strconv.FormatFloat(f, 'g', 6, 64) }

func moment(at int64) string { return time.Unix(0, at).UTC().Format("01-02T15:04") }

// What this version of the fold derives stays as it is.
func TestFrozenMarkets(t *testing.T) {
	root, err := os.OpenRoot("testdata")
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	foldtest.Frozen(t, root, markets.Minutes(schemas.Coins()), func() []foldtest.LogMinute {
		var minutes []foldtest.LogMinute
		for _, m := range random(3, 45) {
			minutes = append(minutes, foldtest.LogMinute{End: m.end, Inputs: [][]foldtest.LogRecord{unplaced(m.candles),
				unplaced(m.observations)}})
		}
		return minutes
	})
}

// unplaced are records whose offsets make no difference.
func unplaced(records []eventsv1.Marked) []foldtest.LogRecord {
	var list []foldtest.LogRecord
	for _, rec := range records {
		list = append(list, foldtest.LogRecord{Record: rec})
	}
	return list
}
