package operations

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/marketlog/marketlog/deploy/admin"
	"github.com/marketlog/marketlog/deploy/instance"
	"github.com/marketlog/marketlog/producers/poll"
	"github.com/marketlog/marketlog/query/symbols"
	"github.com/marketlog/marketlog/query/views"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Bounds of what an operator sets, in bytes.
const (
	maxOverrideName   = 64
	maxOverrideReason = 512
)

// NoCoin is how commands write that a symbol means no coin that we know.
const NoCoin = "none"

// SymbolInput is what the verbs of symbols take.
type SymbolInput struct {
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

// OverrideLine is an override as commands show it.
type OverrideLine struct {
	Source string    `json:"source"`
	Symbol string    `json:"symbol"`
	Coin   string    `json:"coin"`
	Since  time.Time `json:"since"`
	Reason string    `json:"reason"`
}

func describeOverride(o *eventsv1.SymbolOverride) OverrideLine {
	line := OverrideLine{Source: o.Source, Symbol: o.Symbol, Coin: o.CoinId, Since: time.Unix(0, o.Time).UTC(), Reason: o.Reason}
	if line.Coin == schemas.NoCoin {
		line.Coin = NoCoin
	}
	return line
}

// symbolVerbs resolve symbols, and write, list and take back overrides.
func symbolVerbs(in *instance.Instance) []admin.Command {
	verb := func(name string, run func(ctx context.Context, input SymbolInput, emit func(any) error) error) admin.Command {
		return admin.Command{Name: name, Run: func(ctx context.Context, raw json.RawMessage, emit func(any) error) error {
			var input SymbolInput
			if err := json.Unmarshal(raw, &input); err != nil {
				return fmt.Errorf("reading the input: %w", err)
			}
			return run(ctx, input, emit)
		}}
	}
	return []admin.Command{
		verb("symbols.resolve", func(ctx context.Context, input SymbolInput, emit func(any) error) error {
			known, err := openSymbols(ctx, in)
			if err != nil {
				return err
			}
			return emit(known.unit.Resolve(schemas.SymbolRequest{
				Symbol: input.Symbol, Source: input.Source, Price: input.Price, At: in.Clock.Now().UnixNano(),
				Context: schemas.SymbolContext{Exchange: input.Exchange, Platform: input.Platform, Contract: input.Contract, Name: input.Name},
			}))
		}),
		verb("symbols.override.list", func(ctx context.Context, _ SymbolInput, emit func(any) error) error {
			known, err := openSymbols(ctx, in)
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
		verb("symbols.override.set", func(ctx context.Context, input SymbolInput, emit func(any) error) error {
			override, err := readOverride(input)
			if err != nil {
				return err
			}
			known, err := openSymbols(ctx, in)
			if err != nil {
				return err
			}
			if input.Coin != NoCoin && known.catalog.Snapshot().ByID(override.CoinId) == nil {
				return fmt.Errorf("COIN %q is not a coin id known to the coin table or a source: find ids with `marketlog symbols resolve`; use %s for a symbol that is not a coin", input.Coin, NoCoin)
			}
			if err := writeOverride(ctx, in, override); err != nil {
				return err
			}
			return emit(describeOverride(override))
		}),
		verb("symbols.override.remove", func(ctx context.Context, input SymbolInput, emit func(any) error) error {
			override, err := readOverride(input)
			if err != nil {
				return err
			}
			known, err := openSymbols(ctx, in)
			if err != nil {
				return err
			}
			override.CoinId = ""
			if _, ok := known.overrides.At(override.Source, override.Symbol, in.Clock.Now().UnixNano()); !ok {
				return fmt.Errorf("there is no override of %s at %s; `marketlog symbols override list` shows them", override.Symbol, override.Source)
			}
			if err := writeOverride(ctx, in, override); err != nil {
				return err
			}
			return emit(describeOverride(override))
		}),
	}
}

// readOverride checks what an operator sets.
func readOverride(input SymbolInput) (*eventsv1.SymbolOverride, error) {
	override := &eventsv1.SymbolOverride{Source: schemas.VenueSlug(input.Source), Symbol: strings.ToUpper(strings.TrimSpace(input.Symbol)), CoinId: input.Coin, Reason: strings.TrimSpace(input.Reason)}
	if override.CoinId == NoCoin {
		override.CoinId = schemas.NoCoin
	}
	var faults []error
	for _, f := range []struct{ name, text string }{{"SOURCE", override.Source}, {"SYMBOL", override.Symbol}} {
		if f.text == "" || len(f.text) > maxOverrideName || strings.ContainsFunc(f.text, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
			faults = append(faults, fmt.Errorf("%s %.70q must have 1 to %d bytes and no spaces", f.name, f.text, maxOverrideName))
		}
	}
	if override.Reason == "" || len(override.Reason) > maxOverrideReason {
		faults = append(faults, fmt.Errorf("--reason must have 1 to %d bytes: state the evidence", maxOverrideReason))
	}
	return override, errors.Join(faults...)
}

// writeOverride writes what an operator sets into the log, where it holds from now on.
func writeOverride(ctx context.Context, in *instance.Instance, override *eventsv1.SymbolOverride) error {
	producer, err := in.Stream.NewProducer()
	if err != nil {
		return fmt.Errorf("connecting to the log: %w", err)
	}
	defer producer.Close()
	now := in.Clock.Now()
	override.Time = now.UnixNano()
	value, err := (&eventsv1.ReferenceRecord{Producer: instance.OperatorKey, Epoch: override.Time, Body: &eventsv1.ReferenceRecord_Override{Override: override}}).MarshalVT()
	if err != nil {
		return fmt.Errorf("encoding an override: %w", err)
	}
	rec := &kgo.Record{Topic: schemas.TopicReferenceRaw, Key: []byte(instance.OperatorKey), Value: value, Timestamp: now}
	if err := producer.ProduceSync(ctx, rec).FirstErr(); err != nil {
		return fmt.Errorf("writing the override of %s at %s: %w", override.Symbol, override.Source, err)
	}
	in.Log.Info("symbol override written", "source", override.Source, "symbol", override.Symbol, "coin", override.CoinId, "reason", override.Reason)
	return nil
}

// knownSymbols is what the log and the views know of symbols at one moment.
type knownSymbols struct {
	catalog   *views.Catalog
	overrides *schemas.SymbolOverrides
	unit      *symbols.Unit
}

// openSymbols reads the ends of the topics that hold coins.
func openSymbols(ctx context.Context, in *instance.Instance) (*knownSymbols, error) {
	overrides, err := in.Overrides(ctx)
	if err != nil {
		return nil, err
	}
	table := schemas.Coins()
	catalog, priceCache := views.NewCatalog(table), views.NewPriceCache(table)
	if _, err := in.FillPriceCache(ctx, priceCache); err != nil {
		return nil, err
	}
	if err := in.FillAbsentPrices(ctx, priceCache); err != nil {
		return nil, err
	}
	for _, t := range []struct {
		tail  *stream.Tail
		apply func(stream.TailRecord) error
	}{
		{in.Tail(schemas.TopicReferenceRaw, poll.RepeatedWithin), func(rec stream.TailRecord) error {
			return errors.Join(instance.FollowOverrides(overrides)(rec), catalog.ApplyReference(rec))
		}},
		{in.Tail(schemas.TopicMarkets, instance.MarketsTail), catalog.ApplyMarkets},
	} {
		if err := readTail(ctx, t.tail, t.apply); err != nil {
			return nil, err
		}
	}
	// A command reads while no minute ends.
	catalog.Snapshot()
	return &knownSymbols{catalog, overrides, symbols.New(catalog, priceCache, views.NewFXRates(), nil, nil, overrides)}, nil
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
