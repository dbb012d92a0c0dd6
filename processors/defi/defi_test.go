package defi_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/marketlog/marketlog/processors"
	"github.com/marketlog/marketlog/processors/defi"
	"github.com/marketlog/marketlog/processors/foldtest"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

func TestDefi(t *testing.T) {
	root, err := os.OpenRoot("testdata")
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for _, file := range []string{"totals.txt", "rates.txt", "lists.txt", "states.txt"} {
		t.Run(file, func(t *testing.T) {
			foldtest.RunCases(t, root, file, func() foldtest.Reader { return &reader{fold: defi.New()} })
		})
	}
}

// reader understands
//
//	protocol TIME SLUG CATEGORY TVL [name= symbol= 1d= 7d= source=] [KEY=AMOUNT...]   keys are the source's own, such as Ethereum-borrowed
//	chain TIME CHAIN COIN                                                           a chain's own coin
//	coin TIME SOURCE PART COIN [CATEGORIES]
//	market TIME COIN CAP                                                            - for one without a cap
//	market TIME all CAP                                                             the whole market, summed at that time
//	rate TIME PROVIDER CATEGORY COIN APY [TVL] [chain= source= pool= heard= interval= ended= shadowed= unattached= simulated=]
//	read TIME [feed= error=]                                                        an outcome of asking for the protocols
//	notice TIME simulated|real
//	close TIME [totals|rates|lists|states]                                          a minute that ends; what it writes of these, all by default
//
// where a time is a minute of 2026 such as 01-05T10:00. "_" is written for a space in names of categories and chains.
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

func blank(s string) string { return strings.ReplaceAll(s, "_", " ") }

// none takes the dash that means nothing.
func none(s string) string {
	if s == "-" {
		return ""
	}
	return s
}

func (r *reader) Read(line string) error {
	words, options, order := []string{}, map[string]string{}, []string{}
	for _, field := range strings.Fields(line) {
		if name, value, ok := strings.Cut(field, "="); ok {
			options[name] = value
			order = append(order, name)
		} else {
			words = append(words, field)
		}
	}
	moment, err := parse(words[1])
	if err != nil {
		return err
	}
	at := moment.UnixNano()
	record := &eventsv1.ReferenceRecord{}
	switch args := words[2:]; words[0] {
	case "protocol":
		p := &eventsv1.Protocol{Source: "defillama", Slug: args[0], Category: blank(args[1]), Tvl: none(args[2]), Name: args[0], IngestTime: at}
		for _, name := range order {
			switch value := options[name]; name {
			case "name":
				p.Name = blank(value)
			case "symbol":
				p.Symbol = value
			case "1d":
				p.Change1D = value
			case "7d":
				p.Change7D = value
			case "source":
				p.Source = value
			default:
				p.Chains = append(p.Chains, &eventsv1.ChainAmount{Chain: blank(name), Amount: value})
			}
		}
		record.Body = &eventsv1.ReferenceRecord_Protocol{Protocol: p}
	case "chain":
		record.Body = &eventsv1.ReferenceRecord_ChainTvl{ChainTvl: &eventsv1.ChainTvl{Source: "defillama", Chain: blank(args[0]), CoinId: none(args[1]), IngestTime: at}}
	case "coin":
		c := &eventsv1.Coin{Source: args[0], Part: args[1], SourceId: args[2], Symbol: args[2][:1], Name: args[2], IngestTime: at}
		if known, ok := schemas.Coins().ByID(args[2]); ok {
			c.Symbol, c.Name = known.Symbol, known.Name
		}
		if c.Source == "coinpaprika" { // which spells its ids so
			c.SourceId = strings.ToLower(c.Symbol + "-" + strings.ReplaceAll(c.Name, " ", "-"))
		}
		if len(args) > 3 {
			c.Categories = strings.Split(blank(args[3]), ",")
		}
		record.Body = &eventsv1.ReferenceRecord_Coin{Coin: c}
	case "market":
		r.open = append(r.open, market(at, args[0], args[1]))
		return nil
	case "rate":
		rec, err := rateEntry(at, args, options)
		if err != nil {
			return err
		}
		r.open = append(r.open, rec)
		return nil
	case "read":
		feed := options["feed"]
		if feed == "" {
			feed = "protocols"
		}
		record.Body = &eventsv1.ReferenceRecord_Fetch{Fetch: &eventsv1.Fetch{Source: "defillama", Feed: feed, Error: options["error"], Started: at}}
	case "notice":
		record.Body = &eventsv1.ReferenceRecord_Notice{Notice: &eventsv1.SourceNotice{Source: "defillama", Simulated: args[0] == "simulated"}}
	case "close":
		r.close(at, args)
		return nil
	default:
		return fmt.Errorf("%q is no command", words[0])
	}
	r.open = append(r.open, record)
	return nil
}

func parse(s string) (time.Time, error) { return time.Parse("2006-01-02T15:04", "2026-"+s) }

func market(at int64, coin, marketCap string) eventsv1.Marked {
	value, err := strconv.ParseFloat(marketCap, 64)
	if coin == "all" {
		return &eventsv1.MarketRecord{Body: &eventsv1.MarketRecord_Summary{Summary: &eventsv1.Summary{Time: at, TotalMarketCap: value}}}
	}
	row := &eventsv1.Market{CoinId: coin}
	if err == nil {
		row.MarketCap = &value
	}
	return &eventsv1.MarketRecord{Body: &eventsv1.MarketRecord_Market{Market: row}}
}

func rateEntry(at int64, args []string, options map[string]string) (eventsv1.Marked, error) {
	e := &eventsv1.RateEntry{
		Provider: args[0], Category: args[1], CoinId: args[2], Symbol: strings.ToUpper(args[2][:3]), Chain: "Ethereum", Source: "defillama-yields",
		Time: at, Heard: at, Said: &eventsv1.Rate{Interval: int64(time.Hour)},
	}
	var err error
	if e.Apy, err = strconv.ParseFloat(args[3], 64); err != nil {
		return nil, err
	}
	if len(args) > 4 {
		tvl, err := strconv.ParseFloat(args[4], 64)
		if err != nil {
			return nil, err
		}
		e.TvlUsd = &tvl
	}
	e.Pool = e.Provider + " " + e.CoinId
	for name, value := range options {
		switch name {
		case "chain":
			e.Chain = none(blank(value))
		case "source":
			e.Source = value
		case "pool":
			e.Pool = value
		case "heard":
			received, err := parse(value)
			if err != nil {
				return nil, err
			}
			e.Heard = received.UnixNano()
		case "interval":
			interval, err := time.ParseDuration(value)
			if err != nil {
				return nil, err
			}
			e.Said.Interval = int64(interval)
		case "ended":
			e.Ended = true
		case "shadowed":
			e.Shadowed = value
		case "unattached":
			e.Unattached = value
		case "simulated":
			e.Simulated = true
		default:
			return nil, fmt.Errorf("%q is no option", name)
		}
	}
	return &eventsv1.RateRecord{Body: &eventsv1.RateRecord_Entry{Entry: e}}, nil
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
		rec := o.Record.(*eventsv1.DefiRecord)
		switch {
		case rec.GetSummary() != nil:
			s := rec.GetSummary()
			if shows("totals") {
				fmt.Fprintln(&r.output, totals(s))
			}
			if shows("rates") {
				fmt.Fprint(&r.output, means("lending", s.LendingRates), means("staking", s.StakingRates), means("borrowing", s.BorrowingRates))
			}
			if shows("lists") {
				fmt.Fprint(&r.output, lists(s))
			}
		case rec.GetState() != nil && shows("states"):
			s := rec.GetState()
			fmt.Fprintf(&r.output, "state %s:", clock(s.Minute))
			for _, p := range s.Protocols {
				fmt.Fprintf(&r.output, " %s", p.Slug)
			}
			for _, c := range s.Chains {
				fmt.Fprintf(&r.output, " %s(%s)", c.Chain, c.CoinId)
			}
			for _, c := range s.Coins {
				fmt.Fprintf(&r.output, " %s(%d)", c.CoinId, len(c.Words))
			}
			if s.Source != nil {
				fmt.Fprintf(&r.output, " read=%s", clock(s.Source.Read))
			}
			fmt.Fprintln(&r.output)
		}
	}
}

// described collects the figures of a line.
type described struct{ strings.Builder }

func (d *described) add(name string, f float64) { fmt.Fprintf(d, " %s=%s", name, figure(f)) }

func (d *described) optional(name string, f *float64) {
	if f != nil {
		d.add(name, *f)
	}
}

func totals(s *eventsv1.DefiSummary) string {
	var d described
	fmt.Fprintf(&d, "summary %s read %s", clock(s.Time), clock(s.Read))
	if s.Oldest != s.Read {
		fmt.Fprintf(&d, " oldest %s", clock(s.Oldest))
	}
	d.add("tvl", s.TotalTvl)
	d.add("double", s.TotalTvlWithDoubleCount)
	d.add("lending", s.LendingTvl)
	d.add("staking", s.StakingTvl)
	d.add("borrowing", s.BorrowingTvl)
	d.add("cefi", s.CefiTvl)
	d.optional("ratio", s.DefiToCefiRatio)
	d.optional("cap", s.DefiMarketCap)
	d.optional("dominance", s.DefiMarketDominance)
	fmt.Fprintf(&d, " protocols=%d", s.ProtocolCount)
	if s.Simulated {
		d.WriteString(" simulated")
	}
	return d.String()
}

func means(name string, r *eventsv1.DefiRates) string {
	var d described
	fmt.Fprintf(&d, "  %s rates n=%d", name, r.Count)
	d.optional("mean", r.Average)
	d.optional("median", r.Median)
	d.optional("weighted", r.Weighted)
	return d.String() + "\n"
}

func lists(s *eventsv1.DefiSummary) string {
	var d described
	d.WriteString("  lending")
	d.add("borrowed", s.Lending.Borrowed)
	d.optional("utilization", s.Lending.Utilization)
	fmt.Fprintf(&d, " protocols=%d\n", s.Lending.ProtocolCount)
	d.WriteString(rows(s.Lending.Protocols) + rows(s.Lending.Assets))
	d.WriteString("  staking")
	d.add("staked", s.Staking.Staked)
	d.optional("liquid", s.Staking.LiquidDominance)
	fmt.Fprintf(&d, " protocols=%d\n", s.Staking.ProtocolCount)
	d.WriteString(rows(s.Staking.Protocols) + rows(s.Staking.Chains))
	d.WriteString("  borrowing")
	d.add("collateral", s.Borrowing.Collateral)
	d.optional("ratio", s.Borrowing.CollateralizationRatio)
	d.optional("utilization", s.Borrowing.Utilization)
	fmt.Fprintf(&d, " protocols=%d\n", s.Borrowing.ProtocolCount)
	d.WriteString(rows(s.Borrowing.Protocols) + rows(s.Borrowing.Assets))
	return d.String()
}

func rows(list []*eventsv1.DefiRow) string {
	var d described
	for _, r := range list {
		fmt.Fprintf(&d, "    %s", r.Key)
		for _, word := range []string{r.Name, r.Symbol, r.CoinId} {
			if word != "" && word != r.Key {
				fmt.Fprintf(&d, " %q", word)
			}
		}
		d.add("value", r.Value)
		d.optional("share", r.Share)
		d.optional("24h", r.Change24H)
		d.optional("7d", r.Change7D)
		d.optional("apy", r.Apy)
		d.optional("borrow", r.BorrowApy)
		d.optional("utilization", r.Utilization)
		d.optional("collateral", r.Collateral)
		d.optional("ratio", r.CollateralizationRatio)
		d.optional("staked", r.StakingRatio)
		if len(r.Chains) > 0 {
			d.WriteString(" on " + strings.Join(r.Chains, ","))
		}
		d.WriteByte('\n')
	}
	return d.String()
}

func figure(f float64) string { return strconv.FormatFloat(f, 'g', 6, 64) }

func clock(at int64) string { return time.Unix(0, at).UTC().Format("01-02T15:04") }

// What this version of the fold derives stays as it is.
func TestFrozenDefi(t *testing.T) {
	root, err := os.OpenRoot("testdata")
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	foldtest.Frozen(t, root, defi.Minutes(), func() []foldtest.LogMinute {
		var minutes []foldtest.LogMinute
		for _, m := range random(3, 60) {
			minute := foldtest.LogMinute{End: m.end}
			for _, records := range m.topics {
				var input []foldtest.LogRecord
				for _, rec := range records {
					input = append(input, foldtest.LogRecord{Record: rec})
				}
				minute.Inputs = append(minute.Inputs, input)
			}
			minutes = append(minutes, minute)
		}
		return minutes
	})
}
