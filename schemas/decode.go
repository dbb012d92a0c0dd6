package schemas

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// DecodeRecord decodes the value of a record of a topic of the table. Every reader of the log decides with it which records
// count: one that it returns an error for is passed over, live and in a replay alike, and never stops its reader. The sink
// of the topic writes such a record into the dead letters; of ticks.raw.v1, the fold that resolves ticks.
//
// A record that ends a key of a compacted topic has no value and is not for this function.
func DecodeRecord(topic string, value []byte) (eventsv1.Marked, error) {
	rec, err := NewRecord(topic)
	if err != nil {
		return nil, err
	}
	if err := rec.UnmarshalVT(value); err != nil {
		return nil, err
	}
	if err := CheckRecord(rec); err != nil {
		return nil, err
	}
	return rec, nil
}

// NewRecord is an empty record of a topic of the table.
func NewRecord(topic string) (eventsv1.Marked, error) {
	switch topic {
	case TopicTicksRaw:
		return &eventsv1.RawRecord{}, nil
	case TopicTicks:
		return &eventsv1.ResolvedRecord{}, nil
	case TopicQuotes:
		return &eventsv1.QuoteRecord{}, nil
	case TopicPrices:
		return &eventsv1.PriceRecord{}, nil
	case TopicCandles:
		return &eventsv1.CandleRecord{}, nil
	case TopicBackfillRaw:
		return &eventsv1.BackfillRecord{}, nil
	case TopicMarkets:
		return &eventsv1.MarketRecord{}, nil
	case TopicRates:
		return &eventsv1.RateRecord{}, nil
	case TopicDefi:
		return &eventsv1.DefiRecord{}, nil
	case TopicEarn:
		return &eventsv1.EarnRecord{}, nil
	case TopicReferenceRaw, TopicCoinMarketsRaw, TopicRatesRaw:
		return &eventsv1.ReferenceRecord{}, nil
	case TopicUsage:
		return &eventsv1.UsageRecord{}, nil
	case TopicKeys:
		return &eventsv1.KeyRecord{}, nil
	case TopicTicksRawDead, TopicReferenceRawDead:
		return &eventsv1.DeadRecord{}, nil
	default:
		return nil, fmt.Errorf("topic %q is not in the topic table", topic)
	}
}

var (
	errNoBody   = errors.New("the record has no body that this version knows")
	errNoMark   = errors.New("the record has no mark")
	errBadMark  = errors.New("the mark of the record is of no input of this topic")
	errNoFields = errors.New("the record lacks what its kind needs")
)

// CheckRecord says why a decoded record cannot be one of its topic. Protobuf decodes an empty value, some cut-off ones and
// some records of other messages without an error; what they leave would be taken for a record without a cause, or for one
// that is caused by all that is still to come.
func CheckRecord(rec eventsv1.Marked) error {
	switch r := rec.(type) {
	case *eventsv1.RawRecord:
		return need(r.Body != nil, true)
	case *eventsv1.ReferenceRecord:
		return need(r.Body != nil, true)
	case *eventsv1.BackfillRecord:
		return need(r.Body != nil, r.GetCandle() == nil || r.GetCandle().Venue != "" && r.GetCandle().Start > 0)
	case *eventsv1.KeyRecord:
		return need(true, r.Id != "" && len(r.Hash) == 32) // SHA-256
	case *eventsv1.UsageRecord:
		return need(true, r.Replica != "" && r.Budget != "" && r.Time != 0)
	case *eventsv1.DeadRecord:
		if r.Pulse != nil || r.Mark != nil {
			return cmp.Or(need(r.Letter != nil || r.Pulse != nil, true), checkMark(r.Mark, byOffset))
		}
		return need(r.Letter != nil || r.Retry != nil, true) // a producer or an operator wrote it
	case *eventsv1.ResolvedRecord:
		if r.GetControl() != nil {
			return nil // a replay writes it, no input causes it
		}
		tick := r.GetTick()
		return cmp.Or(need(r.Body != nil, tick == nil || tick.Tick.GetVenue() != ""), checkMark(r.Mark, byOffset))
	case *eventsv1.PriceRecord:
		if r.GetControl() != nil {
			return nil
		}
		price := r.GetPrice()
		return cmp.Or(need(r.Body != nil, price == nil || price.CoinId != "" && price.Time > 0), checkMark(r.Mark, byOffset))
	case *eventsv1.CandleRecord:
		if r.GetControl() != nil {
			return nil
		}
		candle, venue := r.GetCandle(), r.GetVenueCandle()
		return cmp.Or(need(r.Body != nil, (candle == nil || candle.CoinId != "") && (venue == nil || venue.Venue != "")), checkMark(r.Mark, byOffset))
	case *eventsv1.QuoteRecord:
		rate := r.GetRate()
		return cmp.Or(need(r.Body != nil, rate == nil || rate.QuoteId != "" && rate.Rate > 0), checkMark(r.Mark, byTime))
	case *eventsv1.MarketRecord:
		if r.GetControl() != nil {
			return nil
		}
		return cmp.Or(need(r.Body != nil, true), checkMark(r.Mark, byTime))
	case *eventsv1.RateRecord:
		if r.GetControl() != nil {
			return nil
		}
		return cmp.Or(need(r.Body != nil, true), checkMark(r.Mark, byTime))
	case *eventsv1.DefiRecord:
		if r.GetControl() != nil {
			return nil
		}
		return cmp.Or(need(r.Body != nil, true), checkMark(r.Mark, byTime))
	case *eventsv1.EarnRecord:
		if r.GetControl() != nil {
			return nil
		}
		return cmp.Or(need(r.Body != nil, true), checkMark(r.Mark, byTime))
	default:
		return fmt.Errorf("%T is no record of the log", rec)
	}
}

func need(body, fields bool) error {
	switch {
	case !body:
		return errNoBody
	case !fields:
		return errNoFields
	default:
		return nil
	}
}

// markedBy is what stands in the offset of a mark: an offset, or the second or minute that was folded.
type markedBy bool

const (
	byOffset markedBy = false
	byTime   markedBy = true
)

// maxOffset is more than any partition holds, and less than any time since 1970 in nanoseconds but its first twelve days.
const maxOffset = int64(1e15)

// checkMark refuses a mark that would pass for a later one than all that follow.
func checkMark(m *eventsv1.Mark, by markedBy) error {
	switch {
	case m == nil:
		return errNoMark
	case m.Partition < 0 || m.Partition >= mostPartitions || m.Offset < 0:
		return errBadMark
	case by == byOffset && m.Offset >= maxOffset, by == byTime && m.Offset%int64(time.Second) != 0:
		return errBadMark
	default:
		return nil
	}
}

// mostPartitions bounds what a mark can name.
var mostPartitions = func() (most int32) {
	for _, t := range Topics {
		most = max(most, t.Partitions)
	}
	return most
}()
