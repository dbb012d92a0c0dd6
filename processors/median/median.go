// Package median publishes the price of each coin: once a second of log time it applies
// schemas.Aggregate to the markets received in the last two minutes, and writes what changed. Every
// price carries the inputs that it was made from and the version of the rule, so it can be made again.
package median

import (
	"slices"
	"strings"
	"time"

	"github.com/marketlog/marketlog/processors"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// New makes the fold of one partition of ticks.v1, which is fed by the given number of partitions
// of ticks.raw.v1.
func New(coins *schemas.CoinTable, origins int32) processors.Fold {
	return &fold{table: coins, origins: processors.NewOrigins(origins), byID: map[string]*coin{}}
}

type fold struct {
	table   *schemas.CoinTable
	origins *processors.Origins
	byID    map[string]*coin
	// coins is sorted by id: the order of outputs must not depend on which was received first.
	coins []*coin
	// second is the last evaluated one.
	second int64
}

type coin struct {
	id, symbol string
	markets    map[processors.MarketID]*processors.Market
	dirty      bool
	// expires is when the first of the markets that count now will have been silent too long.
	expires int64
	// published is the last record, nil before the first and after the last fresh input was lost.
	published *eventsv1.Price
}

func (f *fold) Clocks() (now, watermark int64) { return f.origins.Now(), f.origins.Watermark() }

func (f *fold) Apply(in processors.Input, out *processors.Outputs) error {
	rec := in.Record.(*eventsv1.ResolvedRecord)
	switch body := rec.Body.(type) {
	case *eventsv1.ResolvedRecord_Tick:
		f.tick(rec.Mark, body.Tick)
	case *eventsv1.ResolvedRecord_Pulse:
		f.pulse(in, rec.Mark, body.Pulse, out)
	case *eventsv1.ResolvedRecord_Control:
		out.Emit(schemas.TopicPrices, in.Partition, "", f.origins.Now(),
			&eventsv1.PriceRecord{Body: &eventsv1.PriceRecord_Control{Control: body.Control}})
	}
	return nil
}

func (f *fold) tick(mark *eventsv1.Mark, t *eventsv1.ResolvedTick) {
	if t.CoinId == "" {
		return
	}
	c := f.byID[t.CoinId]
	if c == nil {
		c = &coin{id: strings.Clone(t.CoinId), symbol: strings.Clone(strings.ToUpper(t.Tick.Base)), markets: map[processors.MarketID]*processors.Market{}}
		if known, ok := f.table.ByID(t.CoinId); ok {
			c.symbol = known.Symbol
		}
		f.byID[c.id] = c
		i, _ := slices.BinarySearchFunc(f.coins, c.id, func(c *coin, id string) int { return strings.Compare(c.id, id) })
		f.coins = slices.Insert(f.coins, i, c)
	}
	id := processors.MarketID{Venue: t.Tick.Venue, Symbol: t.Tick.Symbol}
	m := c.markets[id]
	if m == nil {
		m = &processors.Market{}
		c.markets[processors.MarketID{Venue: strings.Clone(id.Venue), Symbol: strings.Clone(id.Symbol)}] = m
	}
	m.Apply(mark, t, f.origins.Now())
	c.dirty = true
}

func (f *fold) pulse(in processors.Input, mark *eventsv1.Mark, p *eventsv1.Pulse, out *processors.Outputs) {
	watermark := f.origins.Watermark() / int64(time.Second)
	f.origins.Observe(mark.Partition, p.Now, p.Watermark)
	second := f.origins.Now() - f.origins.Now()%int64(time.Second)
	if second == f.second && f.origins.Watermark()/int64(time.Second) == watermark {
		return
	}
	if second > f.second {
		all := second/int64(schemas.PriceRepeat) != f.second/int64(schemas.PriceRepeat)
		f.second = second
		for _, c := range f.coins {
			if c.dirty || all || c.expires != 0 && c.expires < second {
				f.evaluate(in, c, second, all, out)
			}
		}
	}
	out.Emit(schemas.TopicPrices, in.Partition, "", f.origins.Now(), &eventsv1.PriceRecord{Body: &eventsv1.PriceRecord_Pulse{
		Pulse: &eventsv1.Pulse{Now: f.origins.Now(), Watermark: f.origins.Watermark()},
	}})
}

// evaluate makes the price of one coin in one second, and writes it if it changed or if it is the
// first of its PriceRepeat.
func (f *fold) evaluate(in processors.Input, c *coin, second int64, repeat bool, out *processors.Outputs) {
	// What was published before the open minute began is in the log, and the first evaluation in it repeats every price: until then
	// it is enough to know which markets are left.
	evaluated := !in.Written || !schemas.MinuteClosed(second, in.WrittenUntil)
	var inputs []*eventsv1.PriceInput
	if evaluated {
		inputs = make([]*eventsv1.PriceInput, 0, len(c.markets))
	}
	simulated := false
	c.expires = 0
	for id, m := range c.markets {
		m.Expire(second)
		if m.Silent() {
			delete(c.markets, id)
			continue
		}
		simulated = simulated || m.Simulated()
		if evaluated {
			in := m.Input(id, second)
			in.FreshFor = int64(m.FreshFor())
			inputs = append(inputs, in)
		}
		if at := m.Expires(second); at != 0 && (c.expires == 0 || at < c.expires) {
			c.expires = at
		}
	}
	c.dirty = false
	if !evaluated {
		return
	}
	result, inputs := schemas.Aggregate(inputs, second)
	if result.Reason == schemas.ReasonNoFreshInputs && c.published == nil {
		return // it was published before, or there never was a price
	}
	price := &eventsv1.Price{
		CoinId: c.id, Symbol: c.symbol, Time: second,
		Price: result.Price, Median0: result.Median0, Min: result.Min, Max: result.Max,
		Confidence: result.Confidence, Score: result.Score,
		Accepted: uint32(result.Accepted), Rejected: uint32(result.Rejected),
		Volume24H: result.Volume24h, Source: result.Source, Reason: result.Reason,
		Simulated: simulated, Inputs: inputs, Method: schemas.AggregateVersion, Published: f.origins.Now(),
	}
	if !repeat && !changed(c.published, price) {
		return
	}
	c.published = price
	if result.Reason == schemas.ReasonNoFreshInputs {
		c.published = nil
	}
	out.Emit(schemas.TopicPrices, in.Partition, c.id, second, &eventsv1.PriceRecord{Body: &eventsv1.PriceRecord_Price{Price: price}})
}

func changed(before, after *eventsv1.Price) bool {
	return before == nil || before.Price != after.Price || before.Min != after.Min || before.Max != after.Max ||
		before.Accepted != after.Accepted || before.Rejected != after.Rejected || before.Reason != after.Reason
}
