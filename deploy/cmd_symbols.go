package deploy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/symbols"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream"
)

// Bounds of what an operator says, in bytes.
const (
	maxOverrideName   = 64
	maxOverrideReason = 512
)

// noCoin is how commands write that a symbol means no coin that we know.
const noCoin = "none"

// symbolInput is what the verbs of symbols take.
type symbolInput struct {
	Symbol   string  `json:"symbol,omitempty"`
	Source   string  `json:"source,omitempty"`
	Price    float64 `json:"price,omitempty"`
	Exchange string  `json:"exchange,omitempty"`
	Platform string  `json:"platform,omitempty"`
	Contract string  `json:"contract,omitempty"`
	Name     string  `json:"name,omitempty"`
	Coin     string  `json:"coin,omitempty"`
	Reason   string  `json:"reason,omitempty"`
}

// overrideLine is an override as commands show it.
type overrideLine struct {
	Source string    `json:"source"`
	Symbol string    `json:"symbol"`
	Coin   string    `json:"coin"`
	Since  time.Time `json:"since"`
	Reason string    `json:"reason"`
}

func describeOverride(o *eventsv1.SymbolOverride) overrideLine {
	line := overrideLine{Source: o.Source, Symbol: o.Symbol, Coin: o.CoinId, Since: time.Unix(0, o.Time).UTC(), Reason: o.Reason}
	if line.Coin == schemas.NoCoin {
		line.Coin = noCoin
	}
	return line
}

// symbolVerbs resolve symbols, and write, list and take back overrides.
func symbolVerbs(in *Instance) []Verb {
	verb := func(name string, run func(ctx context.Context, input symbolInput, emit func(any) error) error) Verb {
		return Verb{Name: name, Run: func(ctx context.Context, raw json.RawMessage, emit func(any) error) error {
			var input symbolInput
			if err := json.Unmarshal(raw, &input); err != nil {
				return fmt.Errorf("reading the input: %w", err)
			}
			return run(ctx, input, emit)
		}}
	}
	return []Verb{
		verb("symbols.resolve", func(ctx context.Context, input symbolInput, emit func(any) error) error {
			known, err := in.openSymbols(ctx)
			if err != nil {
				return err
			}
			return emit(known.unit.Resolve(schemas.SymbolRequest{
				Symbol: input.Symbol, Source: input.Source, Price: input.Price, At: in.Clock.Now().UnixNano(),
				Context: schemas.SymbolContext{Exchange: input.Exchange, Platform: input.Platform, Contract: input.Contract, Name: input.Name},
			}))
		}),
		verb("symbols.override.list", func(ctx context.Context, _ symbolInput, emit func(any) error) error {
			known, err := in.openSymbols(ctx)
			if err != nil {
				return err
			}
			for _, o := range known.overrides.InForce(in.Clock.Now().UnixNano()) {
				if err := emit(describeOverride(o)); err != nil {
					return err
				}
			}
			return nil
		}),
		verb("symbols.override.set", func(ctx context.Context, input symbolInput, emit func(any) error) error {
			said, err := readOverride(input)
			if err != nil {
				return err
			}
			known, err := in.openSymbols(ctx)
			if err != nil {
				return err
			}
			if input.Coin != noCoin && known.catalog.Snapshot().ByID(said.CoinId) == nil {
				return fmt.Errorf("COIN %q is no coin id that the table or a source knows: `marketlog symbols resolve` finds ids; %s says that the symbol is no coin of ours", input.Coin, noCoin)
			}
			if err := in.say(ctx, said); err != nil {
				return err
			}
			return emit(describeOverride(said))
		}),
		verb("symbols.override.remove", func(ctx context.Context, input symbolInput, emit func(any) error) error {
			said, err := readOverride(input)
			if err != nil {
				return err
			}
			known, err := in.openSymbols(ctx)
			if err != nil {
				return err
			}
			said.CoinId = ""
			if _, ok := known.overrides.At(said.Source, said.Symbol, in.Clock.Now().UnixNano()); !ok {
				return fmt.Errorf("there is no override of %s at %s; `marketlog symbols override list` shows them", said.Symbol, said.Source)
			}
			if err := in.say(ctx, said); err != nil {
				return err
			}
			return emit(describeOverride(said))
		}),
	}
}

// readOverride checks what an operator says.
func readOverride(input symbolInput) (*eventsv1.SymbolOverride, error) {
	said := &eventsv1.SymbolOverride{Source: schemas.VenueSlug(input.Source), Symbol: strings.ToUpper(strings.TrimSpace(input.Symbol)), CoinId: input.Coin, Reason: strings.TrimSpace(input.Reason)}
	if said.CoinId == noCoin {
		said.CoinId = schemas.NoCoin
	}
	var faults []error
	for _, f := range []struct{ name, text string }{{"SOURCE", said.Source}, {"SYMBOL", said.Symbol}} {
		if f.text == "" || len(f.text) > maxOverrideName || strings.ContainsFunc(f.text, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
			faults = append(faults, fmt.Errorf("%s %.70q must have 1 to %d bytes and no blanks", f.name, f.text, maxOverrideName))
		}
	}
	if said.Reason == "" || len(said.Reason) > maxOverrideReason {
		faults = append(faults, fmt.Errorf("--reason must have 1 to %d bytes: say how you know", maxOverrideReason))
	}
	return said, errors.Join(faults...)
}

// say writes what an operator says into the log, where it holds from now on.
func (in *Instance) say(ctx context.Context, said *eventsv1.SymbolOverride) error {
	producer, err := in.Stream.NewProducer()
	if err != nil {
		return fmt.Errorf("connecting to the log: %w", err)
	}
	defer producer.Close()
	now := in.Clock.Now()
	said.Time = now.UnixNano()
	value, err := (&eventsv1.ReferenceRecord{Producer: operatorKey, Epoch: said.Time, Body: &eventsv1.ReferenceRecord_Override{Override: said}}).MarshalVT()
	if err != nil {
		return fmt.Errorf("encoding an override: %w", err)
	}
	rec := &kgo.Record{Topic: schemas.TopicReferenceRaw, Key: []byte(operatorKey), Value: value, Timestamp: now}
	if err := producer.ProduceSync(ctx, rec).FirstErr(); err != nil {
		return fmt.Errorf("writing the override of %s at %s: %w", said.Symbol, said.Source, err)
	}
	in.Log.Info("override", "source", said.Source, "symbol", said.Symbol, "coin", said.CoinId, "reason", said.Reason)
	return nil
}

// knownSymbols is what the log and the views know of symbols at one moment.
type knownSymbols struct {
	catalog   *query.Catalog
	overrides *schemas.SymbolOverrides
	unit      *symbols.Unit
}

// openSymbols reads the ends of the topics that tell of coins.
func (in *Instance) openSymbols(ctx context.Context) (*knownSymbols, error) {
	overrides, err := in.overrides(ctx)
	if err != nil {
		return nil, err
	}
	table := schemas.Coins()
	catalog, board := query.NewCatalog(table), query.NewBoard(table)
	if _, err := in.fillBoard(ctx, board); err != nil {
		return nil, err
	}
	for _, t := range []struct {
		tail  *stream.Tail
		apply func(stream.TailRecord) error
	}{
		{in.tail(schemas.TopicReferenceRaw, producers.RepeatedWithin), func(rec stream.TailRecord) error {
			return errors.Join(followOverrides(overrides)(rec), catalog.ApplyReference(rec))
		}},
		{in.tail(schemas.TopicMarkets, marketsTail), catalog.ApplyMarkets},
	} {
		if err := readTail(ctx, t.tail, t.apply); err != nil {
			return nil, err
		}
	}
	// A command reads while no minute ends.
	catalog.Snapshot()
	return &knownSymbols{catalog, overrides, symbols.New(catalog, board, query.NewRates(), nil, overrides)}, nil
}

// readTail reads a tail to the end that it found.
func readTail(ctx context.Context, tail *stream.Tail, apply func(stream.TailRecord) error) error {
	reading, stop := context.WithCancel(ctx)
	defer stop()
	done := make(chan error, 1)
	go func() { done <- tail.Run(reading, apply) }()
	var err error
	select {
	case <-tail.CaughtUp():
		stop()
		err = <-done
	case err = <-done:
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return ctx.Err()
}

func (a *App) symbolsCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "symbols", Short: "Find out which coins symbols mean, and say so where it is not clear"}
	var input symbolInput
	resolve := &cobra.Command{
		Use:   "resolve SYMBOL",
		Short: "Say which coin a symbol means, how sure that is and what else was in question",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			input.Symbol = args[0]
			if input.Price < 0 {
				return fmt.Errorf("--price %v must be above 0", input.Price)
			}
			return a.symbolsCall(cmd, "symbols.resolve", input, a.printResolution)
		},
	}
	flags := resolve.Flags()
	flags.StringVar(&input.Source, "source", schemas.GeneralSource, "the venue or source that calls it so")
	flags.Float64Var(&input.Price, "price", 0, "price of one unit in USD")
	flags.StringVar(&input.Exchange, "exchange", "", "the venue, where the source is none")
	flags.StringVar(&input.Platform, "platform", "", "chain that it is issued on")
	flags.StringVar(&input.Contract, "contract", "", "address of its contract")
	flags.StringVar(&input.Name, "name", "", "name of the coin")

	override := &cobra.Command{Use: "override", Short: "Say what a symbol means at a venue or source, from now on"}
	set := &cobra.Command{
		Use:   "set SOURCE SYMBOL COIN",
		Short: "Let a symbol mean a coin id, or " + noCoin + "; SOURCE is a venue, a source or " + schemas.GeneralSource,
		Args:  cobra.ExactArgs(3),
		RunE: func(cmd *cobra.Command, args []string) error {
			input.Source, input.Symbol, input.Coin = args[0], args[1], args[2]
			return a.symbolsCall(cmd, "symbols.override.set", input, a.printOverride)
		},
	}
	list := &cobra.Command{
		Use: "list", Short: "List the overrides in force", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.symbolsCall(cmd, "symbols.override.list", input, a.printOverride)
		},
	}
	var why string // a flag of its own: its default is another
	remove := &cobra.Command{
		Use:   "remove SOURCE SYMBOL",
		Short: "Take an override back",
		Args:  cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			input.Source, input.Symbol, input.Reason = args[0], args[1], why
			return a.symbolsCall(cmd, "symbols.override.remove", input, a.printOverride)
		},
	}
	set.Flags().StringVar(&input.Reason, "reason", "", "how you know; kept with it")
	remove.Flags().StringVar(&why, "reason", "taken back", "why; kept with it")
	override.AddCommand(set, list, remove)
	for _, c := range []*cobra.Command{resolve, set, list, remove} {
		addInstanceFlags(c.Flags())
		addOutputFlag(c.Flags())
	}
	cmd.AddCommand(resolve, override)
	return cmd
}

// symbolsCall asks for a verb and prints its lines, as JSON or by show.
func (a *App) symbolsCall(cmd *cobra.Command, verb string, input symbolInput, show func(*tabwriter.Writer, json.RawMessage) error) error {
	inJSON, err := asJSON(cmd)
	if err != nil {
		return err
	}
	cfg, _, err := a.load(cmd)
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(a.Stdout, 0, 0, 2, ' ', 0)
	lines := 0
	err = a.call(cmd.Context(), cfg, Verb{Name: verb}, jobStart, input, func(raw json.RawMessage) error {
		lines++
		if inJSON {
			return a.printJSON(raw)
		}
		return show(table, raw)
	})
	if err == nil && lines == 0 && !inJSON {
		fmt.Fprintln(a.Stdout, "no override is in force")
	}
	return errors.Join(err, table.Flush())
}

func (a *App) printOverride(table *tabwriter.Writer, raw json.RawMessage) error {
	var line overrideLine
	if err := json.Unmarshal(raw, &line); err != nil {
		return fmt.Errorf("reading an override: %w", err)
	}
	coin := line.Coin
	if coin == "" {
		coin = "taken back"
	}
	_, err := fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", line.Source, line.Symbol, coin, line.Since.Format(time.RFC3339), line.Reason)
	return err
}

func (a *App) printResolution(table *tabwriter.Writer, raw json.RawMessage) error {
	var r symbols.Resolution
	if err := json.Unmarshal(raw, &r); err != nil {
		return fmt.Errorf("reading a resolution: %w", err)
	}
	switch {
	case r.Fiat != "":
		fmt.Fprintf(table, "%s is the currency %s, no coin\n", r.Input, r.Fiat)
	case !r.Resolved:
		fmt.Fprintf(table, "%s is no coin that is known\n", r.Input)
	default:
		units := ""
		if r.Units != 0 {
			units = strconv.FormatFloat(r.Units, 'f', -1, 64) + " of "
		}
		fmt.Fprintf(table, "%s is %s%s (%s), by %s, confidence %d\n", r.Input, units, r.CoinID, r.Name, r.Method, *r.Confidence)
	}
	for _, c := range r.Candidates {
		price := ""
		if c.Price != nil {
			price = strconv.FormatFloat(*c.Price, 'g', 6, 64) + " USD"
		}
		rank := ""
		if c.Rank > 0 {
			rank = "rank " + strconv.Itoa(c.Rank)
		}
		fmt.Fprintf(table, "  %d\t%s\t%s\t%s\t%s\n", c.Score, c.CoinID, c.Name, rank, price)
	}
	return nil
}
