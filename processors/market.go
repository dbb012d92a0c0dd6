package processors

import (
	"strconv"
	"strings"
	"time"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

const (
	// rangeSpan is how far back the range of a market's values is taken.
	rangeSpan = 60
	// paceSpan is the span in seconds over which the pace of a market is measured, up to its newest value. With the
	// freshness of two minutes and an ingest time ahead of now, it lies within WindowMemory.
	paceSpan = 40
	// paceMemory is how far before a second that is evaluated the values lie that the pace of a market which still counts is
	// measured by.
	paceMemory = schemas.FreshFor + schemas.MaxLead + paceSpan*time.Second
	// paceTimes is how many times its mean interval a market may be silent: by chance it would be so once in e^8 times.
	paceTimes = 8
	// leastFresh is the least that a market counts after it was last received; schemas.FreshFor is the most.
	leastFresh = 30 * time.Second
	// maxReorder is how far apart ticks of one market can be received in another order than they
	// happened in: within a frame, or between two channels of a venue.
	maxReorder = 5 * time.Second
)

// Market is the state of one market: its newest trade, quote and ticker. The zero value is ready for
// use; it is not safe for concurrent use.
type Market struct {
	quoteID                     string
	bid, ask, last              float64
	quoteReceived, lastReceived int64 // ingest times
	quoteEvent, lastEvent       int64 // event times
	volumeReceived              int64
	rate                        float64
	rateTime, rateOffset        int64
	unpriced                    bool
	volumeBase, volumeQuote     float64
	partition                   int32
	offset                      int64
	simulated                   bool
	excluded                    bool
	// seconds are the extremes of the value in each of the last rangeSpan seconds that had one.
	seconds []extremes
}

// MarketID names a market: a venue and its own symbol.
type MarketID struct{ Venue, Symbol string }

type extremes struct {
	second    int64
	low, high float64
}

// Apply takes one tick at a log time. A state that is repeated counts as received; one that is outdated
// changes nothing.
//
// What was received while a correction excludes the market, and what before and after, never count together: with the first tick of the other
// kind the market starts over.
func (m *Market) Apply(mark *eventsv1.Mark, r *eventsv1.ResolvedTick, now int64) {
	if excluded := schemas.Flag(r.Flags)&schemas.Excluded != 0; excluded != m.excluded {
		*m = Market{excluded: excluded}
	}
	m.forget(now)
	t := r.Tick
	if m.quoteID != r.QuoteId {
		m.quoteID = strings.Clone(r.QuoteId)
	}
	m.rate, m.rateTime, m.rateOffset = r.Rate, r.RateTime, r.RateOffset
	m.unpriced = schemas.Flag(r.Flags)&schemas.NoRate != 0
	m.partition, m.offset = mark.Partition, mark.Offset
	m.simulated = t.Simulated
	switch t.Kind {
	case eventsv1.TickKind_TICK_KIND_TRADE:
		m.setLast(t, t.Price, now)
	case eventsv1.TickKind_TICK_KIND_QUOTE, eventsv1.TickKind_TICK_KIND_TICKER:
		if t.Last != "" {
			m.setLast(t, t.Last, now)
		}
		if t.Bid != "" || t.Ask != "" {
			m.setQuote(t, now)
		}
		// One that was received before the one that is known, as a spool sends it, would outlive its time.
		if (t.VolumeBase != "" || t.VolumeQuote != "") && t.IngestTime >= m.volumeReceived {
			m.volumeBase, m.volumeQuote, m.volumeReceived = number(t.VolumeBase), number(t.VolumeQuote), t.IngestTime
		}
	}
}

// Expire forgets the parts that are no longer fresh in a second that is evaluated. Nothing may rest on
// what was received longer ago: a fold that was rewound does not know it. So an ingest time that lies
// ahead of all clocks that count, by a producer whose own does not, counts as schemas.MaxLead ahead and no more.
//
// Only a second that is evaluated judges that: where all producers were away, their first ticks come
// before their first clocks, and rightly lie ahead until then.
func (m *Market) Expire(second int64) {
	latest := second + int64(schemas.MaxLead)
	m.lastReceived, m.quoteReceived, m.volumeReceived = min(m.lastReceived, latest), min(m.quoteReceived, latest), min(m.volumeReceived, latest)
	m.forget(second)
}

// forget drops the parts that are no longer fresh at a log time.
func (m *Market) forget(now int64) {
	if !fresh(m.lastReceived, now) {
		m.last, m.lastReceived, m.lastEvent = 0, 0, 0
	}
	if !fresh(m.quoteReceived, now) {
		m.bid, m.ask, m.quoteReceived, m.quoteEvent = 0, 0, 0, 0
	}
	if !fresh(m.volumeReceived, now) {
		m.volumeBase, m.volumeQuote, m.volumeReceived = 0, 0, 0
	}
}

func fresh(receivedAt, now int64) bool {
	return receivedAt != 0 && now-receivedAt <= int64(schemas.FreshFor)
}

func (m *Market) setLast(t *eventsv1.Tick, price string, now int64) {
	if outdated(t, m.lastReceived, m.lastEvent, now) {
		return
	}
	m.lastReceived, m.lastEvent = t.IngestTime, t.EventTime
	m.last = number(price)
	m.note(now, m.last)
}

func (m *Market) setQuote(t *eventsv1.Tick, now int64) {
	if outdated(t, m.quoteReceived, m.quoteEvent, now) {
		return
	}
	m.quoteReceived, m.quoteEvent = t.IngestTime, t.EventTime
	m.bid, m.ask = number(t.Bid), number(t.Ask)
	if m.bid > 0 && m.ask > 0 {
		m.note(now, (m.bid+m.ask)/2)
	}
}

// outdated reports whether a tick is no longer fresh, as one that a spool kept for long, or older than what
// was received before it: by ingest time, or by its own within maxReorder. Beyond that the newer by ingest time is what the venue sends now, or a venue that
// puts its clock back would hold its last price for ever; and a fold that was rewound would not know
// the older one that was to be ignored.
func outdated(t *eventsv1.Tick, receivedAt, event, now int64) bool {
	if !fresh(t.IngestTime, now) || t.IngestTime < receivedAt {
		return true
	}
	return t.EventTime != 0 && t.EventTime < event && t.IngestTime-receivedAt <= int64(maxReorder)
}

// note adds a value to the extremes of a second of log time: those come in order, whatever ingest
// times a spool or a fast clock brings.
func (m *Market) note(now int64, value float64) {
	second := now / int64(time.Second)
	if n := len(m.seconds); n > 0 && m.seconds[n-1].second == second {
		last := &m.seconds[n-1]
		last.low, last.high = min(last.low, value), max(last.high, value)
		return
	}
	if len(m.seconds) > rangeSpan {
		m.seconds = append(m.seconds[:0], m.seconds[len(m.seconds)-rangeSpan:]...)
	}
	m.seconds = append(m.seconds, extremes{second, value, value})
}

// range60 is the greatest less the least value of the rangeSpan seconds before now.
func (m *Market) range60(now int64) float64 {
	from := now/int64(time.Second) - rangeSpan
	first := true
	var low, high float64
	for _, s := range m.seconds {
		if s.second < from {
			continue
		}
		if first {
			low, high, first = s.low, s.high, false
		}
		low, high = min(low, s.low), max(high, s.high)
	}
	return high - low
}

// Silent reports whether neither trade nor quote is left after Expire.
func (m *Market) Silent() bool { return m.lastReceived == 0 && m.quoteReceived == 0 }

// FreshFor is how long the market counts after it was last received, by its own pace: paceTimes the mean interval between
// seconds of log time in which it sent a value, in the paceSpan up to the newest of them.
//
// Nothing is known of its pace where the newest value lies more than schemas.MaxLead before it was last received. Ticks that come before the
// first clock after a leap of log time are noted in the second before it, which may be any time ago: so what a fold that was
// rewound knows is the same.
func (m *Market) FreshFor() time.Duration {
	n := len(m.seconds)
	if n == 0 || m.seconds[n-1].second < (max(m.lastReceived, m.quoteReceived)-int64(schemas.MaxLead))/int64(time.Second) {
		return schemas.FreshFor
	}
	seconds := 0
	for i := n - 1; i >= 0 && m.seconds[i].second > m.seconds[n-1].second-paceSpan; i-- {
		seconds++
	}
	return min(max(paceTimes*paceSpan*time.Second/time.Duration(seconds), leastFresh), schemas.FreshFor)
}

// Expires is when, at or after a second that was evaluated, the next of the parts stops to count: by the pace of the
// market, or for good; 0 where none does any more.
func (m *Market) Expires(second int64) int64 {
	next := int64(0)
	for _, receivedAt := range [...]int64{m.lastReceived, m.quoteReceived} {
		if receivedAt == 0 {
			continue
		}
		for _, after := range [...]time.Duration{m.FreshFor(), schemas.FreshFor} {
			if at := receivedAt + int64(after); at >= second && (next == 0 || at < next) {
				next = at
			}
		}
	}
	return next
}

// Simulated reports whether its newest tick came from the simulator.
func (m *Market) Simulated() bool { return m.simulated }

// Input is the market as the aggregation sees it at a log time, after Expire.
func (m *Market) Input(id MarketID, now int64) *eventsv1.PriceInput {
	in := &eventsv1.PriceInput{
		Provider: id.Venue, Symbol: id.Symbol, QuoteId: m.quoteID,
		Bid: m.bid, Ask: m.ask, Last: m.last,
		QuoteHeard: m.quoteReceived, LastHeard: m.lastReceived,
		EventTime: max(m.lastEvent, m.quoteEvent),
		Rate:      m.rate, RateTime: m.rateTime, RateOffset: m.rateOffset,
		Range60:   m.range60(now),
		Partition: m.partition, Offset: m.offset,
		Unpriced: m.unpriced,
	}
	if m.excluded {
		in.Reason = schemas.InputExcluded
	}
	switch {
	case m.volumeQuote > 0:
		in.Volume24H = m.volumeQuote * m.rate
	case m.volumeBase > 0 && m.last > 0:
		in.Volume24H = m.volumeBase * m.last * m.rate
	}
	return in
}

// number reads a decimal that was checked when the tick was resolved.
func number(s string) float64 {
	f, _ := strconv.ParseFloat(s, 64)
	return f
}
