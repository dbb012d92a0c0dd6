package history

import (
	"slices"

	"github.com/ClickHouse/ch-go/proto"

	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// priceTables are the rows of published prices: each, and the last of each minute.
type priceTables struct {
	prices  priceRows
	minutes minuteRows
}

func (t *priceTables) all() []rows { return []rows{&t.prices, &t.minutes} }

func (t *priceTables) add(_ Place, record eventsv1.Marked) bool {
	rec := record.(*eventsv1.PriceRecord)
	price := rec.GetPrice()
	if price == nil {
		return false
	}
	t.prices.add(rec.Mark, price)
	t.minutes.add(rec.Mark, price)
	return true
}

// priceRows are rows of prices. Their version counts offsets of ticks.v1, which caused them, so that
// a replay from there makes the same rows.
type priceRows struct {
	coinID                                      lowCardinality
	time                                        proto.ColDateTime
	symbol                                      lowCardinality
	price, median0, min, max, confidence, score proto.ColFloat64
	accepted, rejected                          proto.ColUInt32
	volume24h                                   proto.ColFloat64
	source, reason                              lowCardinality
	simulated                                   proto.ColBool
	method                                      proto.ColUInt32
	published                                   proto.ColInt64
	inputs                                      inputColumns
	place                                       place
}

// inputColumns are the columns of inputs, whose arrays end at the same places.
type inputColumns struct {
	ends                                                                     proto.ColUInt64
	provider, symbol, quoteID, reason, basis                                 lowCardinality
	bid, ask, last, rate, range60, volume24h, value, priceUSD, deviation     proto.ColFloat64
	quoteHeard, lastHeard, eventTime, rateTime, rateOffset, offset, freshFor proto.ColInt64
	partition                                                                proto.ColInt32
	unpriced, accepted                                                       proto.ColBool
}

func (r *priceRows) table() string { return "prices" }
func (r *priceRows) len() int      { return r.coinID.Rows() }

func (r *priceRows) add(mark *eventsv1.Mark, p *eventsv1.Price) {
	r.coinID.add(p.CoinId)
	r.time.Data = append(r.time.Data, second(p.Time))
	r.symbol.add(p.Symbol)
	r.price = append(r.price, p.Price)
	r.median0 = append(r.median0, p.Median0)
	r.min = append(r.min, p.Min)
	r.max = append(r.max, p.Max)
	r.confidence = append(r.confidence, p.Confidence)
	r.score = append(r.score, p.Score)
	r.accepted = append(r.accepted, p.Accepted)
	r.rejected = append(r.rejected, p.Rejected)
	r.volume24h = append(r.volume24h, p.Volume24H)
	r.source.add(p.Source)
	r.reason.add(p.Reason)
	r.simulated = append(r.simulated, p.Simulated)
	r.method = append(r.method, max(p.Method, 1))
	r.published = append(r.published, p.Published)
	for _, in := range p.Inputs {
		r.inputs.add(in)
	}
	r.inputs.ends = append(r.inputs.ends, uint64(len(r.inputs.bid)))
	r.place.mark(mark)
}

func (c *inputColumns) add(in *eventsv1.PriceInput) {
	c.provider.add(in.Provider)
	c.symbol.add(in.Symbol)
	c.quoteID.add(in.QuoteId)
	c.bid = append(c.bid, in.Bid)
	c.ask = append(c.ask, in.Ask)
	c.last = append(c.last, in.Last)
	c.quoteHeard = append(c.quoteHeard, in.QuoteHeard)
	c.lastHeard = append(c.lastHeard, in.LastHeard)
	c.eventTime = append(c.eventTime, in.EventTime)
	c.rate = append(c.rate, in.Rate)
	c.rateTime = append(c.rateTime, in.RateTime)
	c.rateOffset = append(c.rateOffset, in.RateOffset)
	c.range60 = append(c.range60, in.Range60)
	c.volume24h = append(c.volume24h, in.Volume24H)
	c.partition = append(c.partition, in.Partition)
	c.offset = append(c.offset, in.Offset)
	c.unpriced = append(c.unpriced, in.Unpriced)
	c.value = append(c.value, in.Value)
	c.priceUSD = append(c.priceUSD, in.PriceUsd)
	c.accepted = append(c.accepted, in.Accepted)
	c.reason.add(in.Reason)
	c.deviation = append(c.deviation, in.DeviationPct)
	c.basis.add(in.Basis)
	c.freshFor = append(c.freshFor, in.FreshFor)
}

func (r *priceRows) columns() []column {
	const text = "LowCardinality(String)"
	return slices.Concat([]column{
		{"coin_id", text, &r.coinID},
		{"time", "DateTime('UTC')", &r.time},
		{"symbol", text, &r.symbol},
		{"price", "Float64", &r.price},
		{"median0", "Float64", &r.median0},
		{"min", "Float64", &r.min},
		{"max", "Float64", &r.max},
		{"confidence", "Float64", &r.confidence},
		{"score", "Float64", &r.score},
		{"accepted", "UInt32", &r.accepted},
		{"rejected", "UInt32", &r.rejected},
		{"volume_24h", "Float64", &r.volume24h},
		{"source", text, &r.source},
		{"reason", text, &r.reason},
		{"simulated", "Bool", &r.simulated},
		{"method", "UInt32", &r.method},
		{"published", "Int64", &r.published},
	}, r.inputs.columns(), r.place.columns())
}

func (c *inputColumns) columns() []column {
	const (
		text    = "LowCardinality(String)"
		float   = "Float64"
		integer = "Int64"
	)
	all := []column{
		{"provider", text, &c.provider},
		{"symbol", text, &c.symbol},
		{"quote_id", text, &c.quoteID},
		{"bid", float, &c.bid},
		{"ask", float, &c.ask},
		{"last", float, &c.last},
		{"quote_heard", integer, &c.quoteHeard},
		{"last_heard", integer, &c.lastHeard},
		{"event_time", integer, &c.eventTime},
		{"rate", float, &c.rate},
		{"rate_time", integer, &c.rateTime},
		{"rate_offset", integer, &c.rateOffset},
		{"range60", float, &c.range60},
		{"volume_24h", float, &c.volume24h},
		{"partition", "Int32", &c.partition},
		{"offset", integer, &c.offset},
		{"unpriced", "Bool", &c.unpriced},
		{"value", float, &c.value},
		{"price_usd", float, &c.priceUSD},
		{"accepted", "Bool", &c.accepted},
		{"reason", text, &c.reason},
		{"deviation_pct", float, &c.deviation},
		{"basis", text, &c.basis},
		{"fresh_for", integer, &c.freshFor},
	}
	for i, in := range all {
		all[i] = column{"inputs." + in.name, "Array(" + in.kind + ")", array{&c.ends, in.values}}
	}
	return all
}

func (r *priceRows) reset() {
	reset(&r.coinID, &r.time, &r.symbol, &r.price, &r.median0, &r.min, &r.max, &r.confidence, &r.score,
		&r.accepted, &r.rejected, &r.volume24h, &r.source, &r.reason, &r.simulated, &r.method, &r.published)
	r.inputs.reset()
	r.place.reset()
}

func (c *inputColumns) reset() {
	reset(&c.ends, &c.provider, &c.symbol, &c.quoteID, &c.bid, &c.ask, &c.last, &c.quoteHeard, &c.lastHeard, &c.eventTime,
		&c.rate, &c.rateTime, &c.rateOffset, &c.range60, &c.volume24h, &c.partition, &c.offset, &c.unpriced,
		&c.value, &c.priceUSD, &c.accepted, &c.reason, &c.deviation, &c.basis, &c.freshFor)
}
