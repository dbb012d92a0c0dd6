// Package rows makes the rows of log records, for the tables that the topic table names, and inserts them in batches. Every row carries what
// caused it and a version made of the logic version and the offset: a record inserted twice, or after a crash again, leaves the rows that it
// leaves once under FINAL.
package rows

import (
	"context"
	"errors"
	"slices"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream/history"
	"github.com/marketlog/marketlog/stream/history/native"
)

// Place is where a record lies in the log.
type Place struct {
	Topic     string
	Partition int32
	Offset    int64
}

// topicRows are the rows of the records of one topic: those of each of its tables.
type topicRows interface {
	// add adds the rows of a record of the topic; it is false for one that has none, such as a pulse or a control.
	add(p Place, record eventsv1.Marked) bool
	// all are the tables, in the order in which they are inserted.
	all() []native.Rows
}

// rowsOf makes the rows of a topic's records, for each topic of the topic table that has tables.
var rowsOf = map[string]func() topicRows{
	schemas.TopicTicks:            func() topicRows { return &tickTables{} },
	schemas.TopicPrices:           func() topicRows { return &priceTables{} },
	schemas.TopicCandles:          func() topicRows { return &candleTables{} },
	schemas.TopicTicksRawDead:     func() topicRows { return &deadTables{} },
	schemas.TopicReferenceRawDead: func() topicRows { return &deadTables{} },
	schemas.TopicReferenceRaw:     newReferenceRows,
	schemas.TopicCoinMarketsRaw:   newReferenceRows,
	schemas.TopicRatesRaw:         newReferenceRows,
	schemas.TopicMarkets:          newMarketRows,
	schemas.TopicRates:            newRateRows,
	schemas.TopicDefi:             newDefiRows,
	schemas.TopicEarn:             newEarnRows,
	schemas.TopicBackfillRaw:      func() topicRows { return &backfillTable{} },
	schemas.TopicUsage:            newUsageRows,
	schemas.TopicServed:           newServedRows,
	schemas.TopicRestatements:     newRestatementRows,
	schemas.TopicCorrections:      newCorrectionRows,
}

// Batch collects the rows of log records until they are inserted. It is used by one goroutine.
type Batch struct {
	records int
	// topics are those of which there was a record, nearly always one; last is the place of that of the record before.
	topics []topicBatch
	last   int
	// done are the tables that the last insert, into those with the suffix tried, has come past.
	tried string
	done  int
}

type topicBatch struct {
	topic string
	rows  topicRows // nil for a topic without tables
}

// Add adds the rows of one record of the topic that the place names; pulses and controls have none.
func (b *Batch) Add(p Place, record eventsv1.Marked) {
	b.done = 0
	if rows := b.of(p.Topic); rows != nil && rows.add(p, record) {
		b.records++
	}
}

// AddUndecodable adds the dead letter of a record that could not be decoded. It lies in no topic of its own: its place is
// that of the record.
func (b *Batch) AddUndecodable(letter *eventsv1.DeadLetter) {
	b.done = 0
	place := Place{Topic: inPlace(letter.Topic, letter.Partition), Offset: letter.Offset}
	b.of(schemas.TopicTicksRawDead).add(place, &eventsv1.DeadRecord{Letter: letter})
	b.records++
}

// of are the rows of a topic.
func (b *Batch) of(topic string) topicRows {
	if b.last < len(b.topics) && b.topics[b.last].topic == topic {
		return b.topics[b.last].rows
	}
	b.last = slices.IndexFunc(b.topics, func(t topicBatch) bool { return t.topic == topic })
	if b.last < 0 {
		b.last = len(b.topics)
		b.topics = append(b.topics, topicBatch{topic: topic})
		if newRows := rowsOf[topic]; newRows != nil {
			b.topics[b.last].rows = newRows()
		}
	}
	return b.topics[b.last].rows
}

func (b *Batch) all() (all []native.Rows) {
	for _, t := range b.topics {
		if t.rows != nil {
			all = append(all, t.rows.all()...)
		}
	}
	return all
}

// ofReplay are the rows of tables that a replay makes again: the others have no shadow.
func (b *Batch) ofReplay() (all []native.Rows) {
	for _, t := range b.topics {
		if t.rows == nil {
			continue
		}
		topic, _ := schemas.TopicNamed(t.topic) // it has rows: it is in the table
		for _, r := range t.rows.all() {
			if slices.ContainsFunc(topic.Tables, func(table schemas.Table) bool { return table.Name == r.Table() && table.Rebuilt() }) {
				all = append(all, r)
			}
		}
	}
	return all
}

// Stated are the rows of tables in which a source states moments of the past, each with its table and the topic of the records.
func (b *Batch) Stated(each func(schemas.Topic, schemas.Table, native.Rows) error) error {
	for _, t := range b.topics {
		topic, err := schemas.TopicNamed(t.topic)
		if err != nil || t.rows == nil {
			continue // a record that could not be decoded has a topic that is not known
		}
		for _, r := range t.rows.all() {
			i := slices.IndexFunc(topic.Tables, func(table schemas.Table) bool { return table.Name == r.Table() && table.Stated != nil })
			if i < 0 || r.Len() == 0 {
				continue
			}
			if err := each(topic, topic.Tables[i], r); err != nil {
				return err
			}
		}
	}
	return nil
}

// Len is the number of records that have rows.
func (b *Batch) Len() int { return b.records }

// Reset empties the batch.
func (b *Batch) Reset() {
	b.records, b.tried, b.done = 0, "", 0
	for _, r := range b.all() {
		r.Reset()
	}
}

// Insert writes the rows into the tables of a store. After an error some may be kept: insert the same batch again, which goes on with the
// table that failed and leaves the same rows under FINAL as if it had been inserted once. Of several suffixes one is inserted after the
// other. An error that is not stream.ErrUnavailable will come again. Suffix names shadow tables of a replay; it is empty for the live ones.
func (b *Batch) Insert(ctx context.Context, s *history.Store, suffix string) error {
	all := b.all()
	if suffix != "" {
		all = b.ofReplay()
	}
	if b.tried != suffix || b.done >= len(all) {
		b.tried, b.done = suffix, 0
	}
	for ; b.done < len(all); b.done++ {
		if err := s.Insert(ctx, all[b.done], suffix); err != nil {
			return err
		}
	}
	return nil
}

// Codes of ClickHouse for a table that is not there (any more).
const (
	codeUnknownTable = 60
	codeTableDropped = 218
)

// InsertShadow writes the rows into the tables of a replay. Those that are not there are passed over:
// the replay has ended or was given up, and the log has yet to say so.
//
// Who writes rows to both must write the shadow first: if the two change names in between, the
// rebuilt table gets the rows twice, which is once, and the other order would leave it without.
func (b *Batch) InsertShadow(ctx context.Context, s *history.Store, generation uint32) error {
	for _, r := range b.all() {
		err := s.Insert(ctx, r, history.ShadowSuffix(generation))
		var refused *clickhouse.Exception
		if errors.As(err, &refused) && (refused.Code == codeUnknownTable || refused.Code == codeTableDropped) {
			continue
		}
		if err != nil {
			return err
		}
	}
	return nil
}
