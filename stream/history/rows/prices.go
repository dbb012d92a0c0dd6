package rows

import (
	"slices"

	"github.com/ClickHouse/ch-go/proto"

	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"

	"github.com/marketlog/marketlog/stream/history/native"
)

// priceTables are the rows of published prices: each, and the last of each hour.
type priceTables struct {
	prices priceRows
	hours  hourRows
}

func (t *priceTables) all() []native.Rows { return []native.Rows{&t.prices, &t.hours} }

func (t *priceTables) add(_ Place, record eventsv1.Marked) bool {
	rec := record.(*eventsv1.PriceRecord)
	price := rec.GetPrice()
	if price == nil {
		return false
	}
	t.prices.add(rec.Mark, price)
	t.hours.add(rec.Mark, price)
	return true
}

// priceRows are rows of prices. Their version counts offsets of ticks.v1, which caused them, so that
// a replay from there makes the same rows.
type priceRows struct {
	coinID                                      native.LowCardinality
	time                                        proto.ColDateTime
	symbol                                      native.LowCardinality
	price, median0, min, max, confidence, score proto.ColFloat64
	accepted, rejected                          proto.ColUInt32
	volume24h                                   proto.ColFloat64
	source, reason                              native.LowCardinality
	simulated                                   proto.ColBool
	method                                      proto.ColUInt32
	published                                   proto.ColInt64
	inputs                                      inputColumns
	place                                       place
}

// inputColumns are the columns of inputs, whose arrays end at the same places.
type inputColumns struct {
	ends                                                                           proto.ColUInt64
	provider, symbol, quoteID, reason, basis                                       native.LowCardinality
	bid, ask, last, rate, range60, volume24h, value, priceUSD, deviation           proto.ColFloat64
	quoteReceived, lastReceived, eventTime, rateTime, rateOffset, offset, freshFor proto.ColInt64
	partition                                                                      proto.ColInt32
	unpriced, accepted                                                             proto.ColBool
}

func (r *priceRows) Table() string { return "prices" }
func (r *priceRows) Len() int      { return r.coinID.Rows() }

func (r *priceRows) add(mark *eventsv1.Mark, p *eventsv1.Price) {
	r.coinID.Add(p.CoinId)
	r.time.Data = append(r.time.Data, native.Second(p.Time))
	r.symbol.Add(p.Symbol)
	r.price = append(r.price, p.Price)
	r.median0 = append(r.median0, p.Median0)
	r.min = append(r.min, p.Min)
	r.max = append(r.max, p.Max)
	r.confidence = append(r.confidence, p.Confidence)
	r.score = append(r.score, p.Score)
	r.accepted = append(r.accepted, p.Accepted)
	r.rejected = append(r.rejected, p.Rejected)
	r.volume24h = append(r.volume24h, p.Volume24H)
	r.source.Add(p.Source)
	r.reason.Add(p.Reason)
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
	c.provider.Add(in.Provider)
	c.symbol.Add(in.Symbol)
	c.quoteID.Add(in.QuoteId)
	c.bid = append(c.bid, in.Bid)
	c.ask = append(c.ask, in.Ask)
	c.last = append(c.last, in.Last)
	c.quoteReceived = append(c.quoteReceived, in.QuoteHeard)
	c.lastReceived = append(c.lastReceived, in.LastHeard)
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
	c.reason.Add(in.Reason)
	c.deviation = append(c.deviation, in.DeviationPct)
	c.basis.Add(in.Basis)
	c.freshFor = append(c.freshFor, in.FreshFor)
}

func (r *priceRows) Columns() []native.Column {
	const text = "LowCardinality(String)"
	return slices.Concat([]native.Column{
		native.Col("coin_id", text, &r.coinID),
		native.Col("time", "DateTime('UTC')", &r.time),
		native.Col("symbol", text, &r.symbol),
		native.Col("price", "Float64", &r.price),
		native.Col("median0", "Float64", &r.median0),
		native.Col("min", "Float64", &r.min),
		native.Col("max", "Float64", &r.max),
		native.Col("confidence", "Float64", &r.confidence),
		native.Col("score", "Float64", &r.score),
		native.Col("accepted", "UInt32", &r.accepted),
		native.Col("rejected", "UInt32", &r.rejected),
		native.Col("volume_24h", "Float64", &r.volume24h),
		native.Col("source", text, &r.source),
		native.Col("reason", text, &r.reason),
		native.Col("simulated", "Bool", &r.simulated),
		native.Col("method", "UInt32", &r.method),
		native.Col("published", "Int64", &r.published),
	}, r.inputs.Columns(), r.place.columns())
}

func (c *inputColumns) Columns() []native.Column {
	const (
		text    = "LowCardinality(String)"
		float   = "Float64"
		integer = "Int64"
	)
	all := []native.Column{
		native.Col("provider", text, &c.provider),
		native.Col("symbol", text, &c.symbol),
		native.Col("quote_id", text, &c.quoteID),
		native.Col("bid", float, &c.bid),
		native.Col("ask", float, &c.ask),
		native.Col("last", float, &c.last),
		native.Col("quote_heard", integer, &c.quoteReceived),
		native.Col("last_heard", integer, &c.lastReceived),
		native.Col("event_time", integer, &c.eventTime),
		native.Col("rate", float, &c.rate),
		native.Col("rate_time", integer, &c.rateTime),
		native.Col("rate_offset", integer, &c.rateOffset),
		native.Col("range60", float, &c.range60),
		native.Col("volume_24h", float, &c.volume24h),
		native.Col("partition", "Int32", &c.partition),
		native.Col("offset", integer, &c.offset),
		native.Col("unpriced", "Bool", &c.unpriced),
		native.Col("value", float, &c.value),
		native.Col("price_usd", float, &c.priceUSD),
		native.Col("accepted", "Bool", &c.accepted),
		native.Col("reason", text, &c.reason),
		native.Col("deviation_pct", float, &c.deviation),
		native.Col("basis", text, &c.basis),
		native.Col("fresh_for", integer, &c.freshFor),
	}
	for i, in := range all {
		all[i] = native.Col("inputs."+in.Name, "Array("+in.Kind+")", native.Array(&c.ends, in.Values))
	}
	return all
}

func (r *priceRows) Reset() {
	native.Reset(&r.coinID, &r.time, &r.symbol, &r.price, &r.median0, &r.min, &r.max, &r.confidence, &r.score,
		&r.accepted, &r.rejected, &r.volume24h, &r.source, &r.reason, &r.simulated, &r.method, &r.published)
	r.inputs.Reset()
	r.place.reset()
}

func (c *inputColumns) Reset() {
	native.Reset(&c.ends, &c.provider, &c.symbol, &c.quoteID, &c.bid, &c.ask, &c.last, &c.quoteReceived, &c.lastReceived, &c.eventTime,
		&c.rate, &c.rateTime, &c.rateOffset, &c.range60, &c.volume24h, &c.partition, &c.offset, &c.unpriced,
		&c.value, &c.priceUSD, &c.accepted, &c.reason, &c.deviation, &c.basis, &c.freshFor)
}
