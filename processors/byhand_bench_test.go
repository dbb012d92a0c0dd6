package processors_test

import (
	"fmt"
	"io"
	"math/bits"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/ClickHouse/ch-go/proto"
	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream"
	"github.com/marketlog/marketlog/stream/history"
)

// byHandRows is how many rows the consumer by hand sends at once.
const byHandRows = 100_000

// byHand is a batch of the table of ticks in ClickHouse's native columns.
type byHand struct {
	coin, venue, symbol, base, quote, quoteID proto.ColLowCardinality[string]
	kind, side                                proto.ColInt8
	day                                       proto.ColDate
	eventTime, ingestTime, rateTime           proto.ColDateTime64
	event                                     proto.ColFixedStr16
	trade                                     proto.ColStr
	amounts                                   [7]proto.ColNullable[proto.Decimal128]
	rate                                      proto.ColFloat64
	rateOffset, markOffset, offset            proto.ColInt64
	flags                                     proto.ColUInt32
	snapshot, simulated                       proto.ColBool
	markPartition, partition                  proto.ColInt32
	version                                   proto.ColUInt128
}

func newByHand() *byHand {
	h := &byHand{}
	for _, names := range []*proto.ColLowCardinality[string]{&h.coin, &h.venue, &h.symbol, &h.base, &h.quote, &h.quoteID} {
		*names = *new(proto.ColStr).LowCardinality()
	}
	for i := range h.amounts {
		h.amounts[i] = *proto.NewColNullable[proto.Decimal128](new(proto.ColDecimal128))
	}
	return h
}

// scaled reads a decimal number with up to 18 digits after the point, as the table keeps it.
func scaled(text string) proto.Nullable[proto.Decimal128] {
	if text == "" {
		return proto.Null[proto.Decimal128]()
	}
	var high, low uint64
	digit := func(d uint64) {
		over, times := bits.Mul64(low, 10)
		sum, carry := bits.Add64(times, d, 0)
		high, low = high*10+over+carry, sum
	}
	behind := -1
	for _, c := range []byte(text) {
		if c == '.' {
			behind = 0
			continue
		}
		digit(uint64(c - '0'))
		if behind >= 0 {
			behind++
		}
	}
	for range 18 - max(behind, 0) {
		digit(0)
	}
	return proto.NewNullable(proto.Decimal128{Low: low, High: high})
}

func (h *byHand) add(r *kgo.Record, rec *eventsv1.ResolvedRecord) {
	t := rec.GetTick()
	k := t.Tick
	h.coin.Append(t.CoinId)
	h.venue.Append(k.Venue)
	h.symbol.Append(k.Symbol)
	h.base.Append(k.Base)
	h.quote.Append(k.Quote)
	h.quoteID.Append(t.QuoteId)
	h.kind.Append(int8(k.Kind))
	h.side.Append(int8(k.Side))
	h.day.Append(time.Unix(0, k.EventTime).UTC())
	h.eventTime.Data = append(h.eventTime.Data, proto.DateTime64(k.EventTime))
	h.ingestTime.Data = append(h.ingestTime.Data, proto.DateTime64(k.IngestTime))
	h.rateTime.Data = append(h.rateTime.Data, proto.DateTime64(t.RateTime))
	h.event.Append([16]byte(k.EventId))
	h.trade.Append(k.TradeId)
	for i, amount := range [...]string{k.Price, k.Size, k.Bid, k.Ask, k.Last, k.VolumeBase, k.VolumeQuote} {
		h.amounts[i].Append(scaled(amount))
	}
	h.rate.Append(t.Rate)
	h.rateOffset.Append(t.RateOffset)
	h.flags.Append(t.Flags)
	h.snapshot.Append(k.Snapshot)
	h.simulated.Append(k.Simulated)
	h.markPartition.Append(rec.Mark.Partition)
	h.markOffset.Append(rec.Mark.Offset)
	h.partition.Append(r.Partition)
	h.offset.Append(r.Offset)
	h.version.Append(proto.UInt128{Low: uint64(r.Offset), High: uint64(rec.Mark.LogicVersion)})
}

// send inserts the batch in the native format, which ClickHouse writes as it comes.
func (h *byHand) send(way http.RoundTripper, database string) error {
	nanoseconds := func(c *proto.ColDateTime64) proto.ColInput { return c.WithPrecision(9).WithLocation(time.UTC) }
	amount := func(i int) proto.ColInput { return proto.Alias(&h.amounts[i], "Nullable(Decimal(38, 18))") }
	input := proto.Input{
		{Name: "coin_id", Data: &h.coin}, {Name: "venue", Data: &h.venue}, {Name: "symbol", Data: &h.symbol},
		{Name: "kind", Data: proto.Alias(&h.kind, "Enum8('trade' = 1, 'quote' = 2, 'ticker' = 3)")},
		{Name: "day", Data: &h.day}, {Name: "event_time", Data: nanoseconds(&h.eventTime)},
		{Name: "event_id", Data: proto.Alias(&h.event, "FixedString(16)")}, {Name: "ingest_time", Data: nanoseconds(&h.ingestTime)},
		{Name: "base", Data: &h.base}, {Name: "quote", Data: &h.quote}, {Name: "quote_id", Data: &h.quoteID},
		{Name: "price", Data: amount(0)}, {Name: "size", Data: amount(1)},
		{Name: "side", Data: proto.Alias(&h.side, "Enum8('' = 0, 'buy' = 1, 'sell' = 2)")}, {Name: "trade_id", Data: &h.trade},
		{Name: "bid", Data: amount(2)}, {Name: "ask", Data: amount(3)}, {Name: "last", Data: amount(4)},
		{Name: "volume_base", Data: amount(5)}, {Name: "volume_quote", Data: amount(6)},
		{Name: "rate", Data: &h.rate}, {Name: "rate_time", Data: nanoseconds(&h.rateTime)}, {Name: "rate_offset", Data: &h.rateOffset},
		{Name: "flags", Data: &h.flags}, {Name: "snapshot", Data: &h.snapshot}, {Name: "simulated", Data: &h.simulated},
		{Name: "raw_partition", Data: &h.markPartition}, {Name: "raw_offset", Data: &h.markOffset},
		{Name: "log_partition", Data: &h.partition}, {Name: "log_offset", Data: &h.offset}, {Name: "version", Data: &h.version},
	}
	rows := h.rate.Rows()
	var encoded proto.Buffer
	if err := (proto.Block{Columns: len(input), Rows: rows}).EncodeRawBlock(&encoded, 0, input); err != nil {
		return fmt.Errorf("encoding %d rows: %w", rows, err)
	}
	values := url.Values{"query": {"INSERT INTO ticks FORMAT Native"}, "database": {database}, "optimize_on_insert": {"0"}}
	request, err := http.NewRequest(http.MethodPost, "http://embedded/?"+values.Encode(), encoded.Reader())
	if err != nil {
		return err
	}
	response, err := way.RoundTrip(request)
	if err != nil {
		return fmt.Errorf("inserting %d rows: %w", rows, err)
	}
	defer response.Body.Close()
	if text, err := io.ReadAll(response.Body); err != nil || response.StatusCode != http.StatusOK {
		return fmt.Errorf("inserting %d rows: %s %s %w", rows, response.Status, text, err)
	}
	return nil
}

// consumeByHand is how an engineer would write it who knows ClickHouse and the log: the generated decoding, native columns of
// 100,000 rows, and the next batch read while one is sent. It guarantees nothing.
func consumeByHand(b *testing.B, log stream.Config, store *history.Store, way *wire) {
	client, err := log.NewClient(kgo.ConsumeTopics(schemas.TopicTicks), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		b.Fatal(err)
	}
	defer client.Close()
	var database string
	if err := store.Conn().QueryRow(b.Context(), "SELECT currentDatabase()").Scan(&database); err != nil {
		b.Fatal(err)
	}
	var sending errgroup.Group
	sending.SetLimit(1)
	batch := newByHand()
	var rec eventsv1.ResolvedRecord
	for done := 0; done < sinkBenchRows; {
		fetches := client.PollFetches(b.Context())
		if err := fetches.Err(); err != nil {
			b.Fatal(err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			rec.Reset()
			if err := rec.UnmarshalVT(r.Value); err != nil {
				b.Fatal(err)
			}
			batch.add(r, &rec)
			if done++; batch.rate.Rows() == byHandRows || done == sinkBenchRows {
				full := batch
				sending.Go(func() error { return full.send(way, database) })
				batch = newByHand()
			}
		})
	}
	if err := sending.Wait(); err != nil {
		b.Fatal(err)
	}
}
