package schemas

import (
	"errors"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// DecodeRecord decodes the value of a record of a topic of the table. Every reader of the log decides with it which records
// count: one that it returns an error for is passed over, live and in a replay alike, and never stops its reader. The sink
// of the topic writes such a record into the dead letters; of ticks.raw.v1, the fold that resolves ticks.
//
// A record that ends a key of a compacted topic has no value and is not for this function.
func DecodeRecord(topic string, value []byte) (eventsv1.Marked, error) {
	row := byName[topic]
	if row == nil {
		return nil, fmt.Errorf("topic %q is not in the topic table", topic)
	}
	rec := row.New()
	if err := rec.UnmarshalVT(value); err != nil {
		return nil, err
	}
	if err := row.Check(rec); err != nil {
		return nil, err
	}
	return rec, nil
}

var (
	errNoBody   = errors.New("the record has no body that this version knows")
	errNoMark   = errors.New("the record has no mark")
	errBadMark  = errors.New("the mark of the record is of no input of this topic")
	errNoFields = errors.New("the record lacks what its kind needs")
)

// Check reports why a decoded record, of the type that New makes, cannot be one of the topic. Protobuf decodes an empty value,
// some cut-off ones and some records of other messages without an error; what they leave would be taken for a record without
// a cause, or for one that is caused by all that is still to come.
func (t *Topic) Check(rec eventsv1.Marked) error {
	if t.Derived && ControlOf(rec) != nil {
		return nil // a replay writes it, no input causes it
	}
	valid := t.valid
	if valid == nil {
		valid = validBody
	}
	if err := valid(rec); err != nil {
		return err
	}
	mark := rec.GetMark()
	if mark == nil && (!t.Derived || t.unmarked != nil && t.unmarked(rec)) {
		return nil
	}
	return checkMark(mark, markedBy(t.Seconds || t.Minutes))
}

// ControlOf is the control that a record is, nil for any other.
func ControlOf(rec eventsv1.Marked) *eventsv1.Control {
	if c, ok := rec.(interface{ GetControl() *eventsv1.Control }); ok {
		return c.GetControl()
	}
	return nil
}

// NewControl makes the record of a topic that is a control; an error if its message has none.
func (t *Topic) NewControl(c *eventsv1.Control) (eventsv1.Marked, error) {
	rec := t.New()
	message, field := messageOf(rec), protoreflect.Name("control")
	control := message.Descriptor().Fields().ByName(field)
	if control == nil || control.Message() == nil || control.Message().FullName() != c.ProtoReflect().Descriptor().FullName() {
		return nil, fmt.Errorf("topic %s: message %s has no field %q of message Control, which a replay writes",
			t.Name, t.Message(), field)
	}
	message.Set(control, protoreflect.ValueOfMessage(c.ProtoReflect()))
	return rec, nil
}

// messageOf is a record as protobuf reflects it; every record is a generated message.
func messageOf(rec eventsv1.Marked) protoreflect.Message { return rec.(proto.Message).ProtoReflect() }

// validBody is for records of which only the body is needed.
func validBody(rec eventsv1.Marked) error {
	message := messageOf(rec)
	body := message.Descriptor().Oneofs().ByName("body")
	return need(body == nil || message.WhichOneof(body) != nil, true)
}

func validRaw(rec eventsv1.Marked) error { return need(rec.(*eventsv1.RawRecord).Body != nil, true) }

func validReference(rec eventsv1.Marked) error {
	return need(rec.(*eventsv1.ReferenceRecord).Body != nil, true)
}

func validBackfill(rec eventsv1.Marked) error {
	r := rec.(*eventsv1.BackfillRecord)
	candle, file := r.GetCandle(), r.GetImportFile()
	return need(r.Body != nil, (candle == nil || candle.Venue != "" && candle.Start > 0) && (file == nil || file.Venue != "" && len(file.Sha256) == sha256Length))
}

func validKey(rec eventsv1.Marked) error {
	r := rec.(*eventsv1.KeyRecord)
	return need(true, r.Id != "" && len(r.Hash) == sha256Length)
}

const sha256Length = 32

func validUsage(rec eventsv1.Marked) error {
	r := rec.(*eventsv1.UsageRecord)
	return need(true, r.Replica != "" && r.Budget != "" && r.Time != 0)
}

func validServed(rec eventsv1.Marked) error {
	r := rec.(*eventsv1.ServedRecord)
	return need(true, r.Replica != "" && r.Time != 0)
}

func validRestatement(rec eventsv1.Marked) error {
	r := rec.(*eventsv1.RestatementRecord)
	row, table := r.GetRestatement(), r.GetTable()
	return need(row.GetTable() != "" && len(row.GetKey()) > 0 || table.GetTable() != "", r.Run != "" && r.Time != 0)
}

func validCorrection(rec eventsv1.Marked) error {
	r := rec.(*eventsv1.CorrectionRecord)
	return need(true, r.Id != "" && r.Time > 0 && (r.Kind == CorrectionExclude && r.Venue != "" || r.Kind == CorrectionWithdraw && r.Withdraws != ""))
}

func validDead(rec eventsv1.Marked) error {
	r := rec.(*eventsv1.DeadRecord)
	switch {
	case unmarkedDead(r):
		return need(r.Letter != nil || r.Retry != nil, true)
	case r.Mark == nil:
		return errNoMark
	default:
		return need(r.Letter != nil || r.Pulse != nil, true)
	}
}

// unmarkedDead are the letters of producers, and what operators write of letters.
func unmarkedDead(rec eventsv1.Marked) bool {
	r := rec.(*eventsv1.DeadRecord)
	return r.Pulse == nil && r.Mark == nil
}

func validResolved(rec eventsv1.Marked) error {
	r := rec.(*eventsv1.ResolvedRecord)
	tick := r.GetTick()
	return need(r.Body != nil, tick == nil || tick.Tick.GetVenue() != "")
}

func validQuote(rec eventsv1.Marked) error {
	r := rec.(*eventsv1.QuoteRecord)
	rate := r.GetRate()
	return need(r.Body != nil, rate == nil || rate.QuoteId != "" && rate.Rate > 0)
}

func validPrice(rec eventsv1.Marked) error {
	r := rec.(*eventsv1.PriceRecord)
	price := r.GetPrice()
	return need(r.Body != nil, price == nil || price.CoinId != "" && price.Time > 0)
}

func validCandle(rec eventsv1.Marked) error {
	r := rec.(*eventsv1.CandleRecord)
	candle, venue := r.GetCandle(), r.GetVenueCandle()
	return need(r.Body != nil, (candle == nil || candle.CoinId != "") && (venue == nil || venue.Venue != ""))
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

// markedBy is what is kept in the offset of a mark: an offset, or the second or minute that was folded.
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
