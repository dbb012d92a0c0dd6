package history

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
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
	all() []rows
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
	place := Place{Topic: InPlace(letter.Topic, letter.Partition), Offset: letter.Offset}
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

func (b *Batch) all() (all []rows) {
	for _, t := range b.topics {
		if t.rows != nil {
			all = append(all, t.rows.all()...)
		}
	}
	return all
}

// Len is the number of records that have rows.
func (b *Batch) Len() int { return b.records }

// Reset empties the batch.
func (b *Batch) Reset() {
	b.records, b.tried, b.done = 0, "", 0
	for _, r := range b.all() {
		r.reset()
	}
}

// Insert writes the rows. After an error some may be kept: insert the same batch again, which goes on with the table that
// failed and leaves the same rows under FINAL as if it had been inserted once. Of several suffixes one is inserted after
// the other. An error that is not
// stream.ErrUnavailable will come again. Suffix names shadow tables of a replay; it is empty for the live ones.
func (s *Store) Insert(ctx context.Context, b *Batch, suffix string) error {
	all := b.all()
	if b.tried != suffix || b.done >= len(all) {
		b.tried, b.done = suffix, 0
	}
	for ; b.done < len(all); b.done++ {
		if err := s.insert(ctx, all[b.done], suffix); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) insert(ctx context.Context, r rows, suffix string) error {
	if r.len() == 0 {
		return nil
	}
	var names []string
	for _, c := range r.columns() {
		names = append(names, "`"+c.name+"`")
	}
	ctx, cancel := context.WithTimeout(ctx, insertTimeout)
	defer cancel()
	body, err := s.send(ctx, "INSERT INTO "+r.table()+suffix+" ("+strings.Join(names, ", ")+") FORMAT Native", newBlockReader(r))
	if err != nil {
		return fmt.Errorf("inserting %d rows into %s: %w", r.len(), r.table()+suffix, err)
	}
	return body.Close()
}

// insertTimeout is when an insert counts as lost: a large one takes a tenth of a second.
const insertTimeout = time.Minute
