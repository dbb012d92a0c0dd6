package poll

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/marketlog/marketlog/producers"
	"github.com/marketlog/marketlog/producers/outbox"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

const (
	// retryFirst is the pause after a first failed round; it doubles with each further one, up to the
	// source's interval.
	retryFirst = 30 * time.Second
	// maxDateAhead is how far a date may be ahead: it begins up to 14 hours earlier east of Greenwich.
	maxDateAhead = 24 * time.Hour
)

// SourceOutbox writes the values of a polled source to the log. Append and Dead return once the log has it,
// or with an error when ctx ends.
type SourceOutbox interface {
	// Known hands over what the log holds of this source, oldest first, as far back as anything can
	// matter to the next answer.
	Known(ctx context.Context, visit func(*eventsv1.ReferenceRecord)) error
	Append(ctx context.Context, records ...*eventsv1.ReferenceRecord) error
	Dead(ctx context.Context, letter *eventsv1.DeadLetter) error
}

// Poller reads one source into the log: what changed, and the outcome of every request. What is in the log
// already is not written again, also not by the process that follows a killed one, until repeatAfter has passed.
type Poller struct {
	source Source
	url    string // configured; empty: the source's own
	fetch  Getter
	out    SourceOutbox
	clock  producers.Clock
	log    *slog.Logger

	feeds []*feedState
	// newest is the last date of which any fixing was written. What is older was written with it or before:
	// answers are written in the order of their dates.
	newest  string
	fixings map[fixingID]string
	// written is what was last written of each entity, without fixings.
	written map[string]lastWritten
	ranks   map[string]uint32    // by the source's id of a coin
	read    map[string]time.Time // by path
	// validators are those of the last response to each request whose records were all written.
	validators map[requestID]Validators
	// lastDeadLetter is the digest of the last body in the dead letters: a source that goes on sending it would
	// fill them.
	lastDeadLetter [sha256.Size]byte

	mu    sync.Mutex
	stats SourceStats
}

// requestID distinguishes the requests of a source.
type requestID struct{ path, body string }

// repeatAfter is when what has not changed is written again, so that the last knownSpan of the log holds all that
// the sources still say.
const repeatAfter = knownSpan - 2*24*time.Hour

// lastWritten is what was written of an entity, as a digest without its times, and when.
type lastWritten struct {
	digest [sha256.Size]byte
	at     int64
}

// feedState is the progress of a feed.
type feedState struct {
	Feed
	left  []Request // of the round under way
	began time.Time
	due   time.Time
	pause time.Duration // after the next failure
}

type fixingID struct{ base, quote, date string }

// SourceStats is how a polled source is doing. Counters run from the start of the process.
type SourceStats struct {
	// Requests were made, Failures of them brought nothing that could be read.
	Requests, Failures int64
	// Written are rows that were new or changed, Refused rows that could not be read, ByReason counts those by each of
	// schemas.Reasons.
	Written, Refused int64
	ByReason         map[schemas.Reason]int64
	// Heard is when a response was last read, also one without changes (304); zero before the first.
	Heard time.Time
	// Err is what the last request failed with, nil if it did not.
	Err error
}

// NewPoller prepares a source; url replaces its default unless it is empty.
func NewPoller(s Source, url string, fetch Getter, out SourceOutbox, clock producers.Clock, log *slog.Logger) *Poller {
	return &Poller{
		source: s, url: strings.TrimRight(url, "/"), fetch: fetch, out: out, clock: clock, log: log.With("source", s.Slug),
		fixings: map[fixingID]string{}, written: map[string]lastWritten{}, ranks: map[string]uint32{}, read: map[string]time.Time{},
		validators: map[requestID]Validators{}, stats: SourceStats{ByReason: map[schemas.Reason]int64{}},
	}
}

// Stats may be called at any time.
func (p *Poller) Stats() SourceStats {
	p.mu.Lock()
	defer p.mu.Unlock()
	stats := p.stats
	stats.ByReason = maps.Clone(stats.ByReason)
	return stats
}

// Run reads what the log holds, then polls until ctx ends, which is not an error.
func (p *Poller) Run(ctx context.Context) error {
	if err := p.out.Known(ctx, p.recall); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return fmt.Errorf("reading the records of %s in the log: %w", p.source.Slug, err)
	}
	p.forget()
	if p.source.History != nil {
		history := &feedState{Feed: Feed{Name: "history", Interval: time.Hour, Requests: Gets(p.source.History)}}
		p.feeds = []*feedState{history}
		for history.began.IsZero() || len(history.left) > 0 {
			if p.turn(ctx) != nil {
				return nil
			}
		}
	}
	p.feeds = nil
	for _, f := range p.source.Feeds {
		p.feeds = append(p.feeds, &feedState{Feed: f})
	}
	for p.turn(ctx) == nil {
	}
	return nil
}

// turn makes one request of the feed whose turn it is, or waits until one is due. The error is that of ctx.
func (p *Poller) turn(ctx context.Context) error {
	now := p.clock.Now()
	next := slices.MinFunc(p.feeds, func(a, b *feedState) int { return a.due.Compare(b.due) })
	if next.due.After(now) {
		return producers.Sleep(ctx, p.clock, next.due.Sub(now))
	}
	// One request each in turn: the feed goes after all others that are due.
	i := slices.IndexFunc(p.feeds, func(f *feedState) bool { return !f.due.After(now) })
	f := p.feeds[i]
	p.feeds = append(slices.Delete(p.feeds, i, i+1), f)
	if len(f.left) == 0 {
		f.began, f.left, f.pause = now, f.Requests(p.known(now)), retryFirst
	}
	if len(f.left) > 0 {
		request := f.left[0]
		err := p.poll(ctx, f.Feed, request)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			p.log.Warn("polling a source failed", "feed", f.Name, "path", request.Path, "error", err)
		}
		if err != nil && !(f.Skips && refusedForGood(err)) {
			f.due = p.clock.Now().Add(min(f.pause, f.Interval))
			f.pause = min(2*f.pause, f.Interval)
			return nil
		}
		f.left, f.pause = f.left[1:], retryFirst
		p.read[request.Path] = p.clock.Now()
	}
	if len(f.left) == 0 {
		f.due = f.began.Add(f.Interval)
	}
	return ctx.Err()
}

// known is what the paths of a round may be chosen by.
func (p *Poller) known(now time.Time) Known {
	rank := func(id string) uint32 { return p.ranks[id] - 1 } // none, 0, comes last
	newest, err := time.Parse(time.DateOnly, p.newest)
	if err != nil {
		newest = time.Time{} // the log holds none
	}
	return Known{Now: now, Read: p.read, Newest: newest, Ranked: slices.SortedFunc(maps.Keys(p.ranks), func(a, b string) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), strings.Compare(a, b))
	})}
}

// recall notes one record that the log holds.
func (p *Poller) recall(rec *eventsv1.ReferenceRecord) {
	if f := rec.GetFetch(); f != nil {
		if f.Error == "" || producers.RefusedForGood(int(f.Status)) {
			if path, ok := strings.CutPrefix(f.Url, p.source.Base(p.url, f.Feed)); ok {
				p.read[path] = time.Unix(0, f.Started)
			}
		}
		return
	}
	p.note(rec)
}

// refusedForGood means that a server answered, and would answer the same again.
func refusedForGood(err error) bool {
	var refused interface{ RefusedForGood() bool }
	return errors.As(err, &refused) && refused.RefusedForGood()
}

// poll makes one request, writes what is new in the answer, and then the outcome.
func (p *Poller) poll(ctx context.Context, feed Feed, request Request) error {
	base, id := p.source.Base(p.url, feed.Name), requestID{request.Path, request.Body}
	answer, err := p.fetch.Get(ctx, base, request, p.validators[id])
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var readings Readings
	var valuesSum uint64
	switch {
	case err != nil:
	case answer.Status == http.StatusNotModified:
	default:
		if err = p.source.Decode(request.Path, answer.Body, &readings); err != nil {
			readings = Readings{}
		} else {
			valuesSum = valuesDigest(&readings)
		}
		p.date(readings.Fixings)
		p.refuseFuture(&readings)
		if bad := errors.Join(append(readings.Refused, err)...); bad != nil {
			if err := p.deadLetter(ctx, bad, answer.Body); err != nil {
				return err
			}
		}
	}
	for _, rec := range readings.Records {
		if rate := rec.GetRate(); rate != nil && !rate.Past {
			rate.Interval = int64(feed.Interval)
		}
	}
	records := slices.Concat(p.changedFixings(readings.Fixings), p.changed(pictures(readings.Records)), p.changed(readings.Records))
	outcome := &eventsv1.Fetch{
		Source: p.source.Slug, Feed: feed.Name, Url: base + request.Path, Status: int32(answer.Status),
		Started: answer.Started.UnixNano(), Duration: int64(answer.Duration), Rows: int64(len(readings.Fixings) + len(readings.Records)), Told: valuesSum,
	}
	if len(answer.Body) > 0 {
		outcome.BodySha256 = fmt.Sprintf("%x", sha256.Sum256(answer.Body))
	}
	if err != nil {
		// It may quote what a server sent; a string of the log is UTF-8.
		outcome.Error = strings.ToValidUTF8(err.Error()[:min(len(err.Error()), outbox.MaxDeadDetail)], "\uFFFD")
	}
	n := len(records)
	records = append(records, &eventsv1.ReferenceRecord{Body: &eventsv1.ReferenceRecord_Fetch{Fetch: outcome}})
	if err := p.out.Append(ctx, records...); err != nil {
		return err
	}
	for _, rec := range records[:n] {
		p.note(rec)
	}
	p.forget()
	// Rates are written again each time, to record that they still hold: an unchanged response without a body would not show
	// that.
	if err == nil && !slices.ContainsFunc(readings.Records, func(rec *eventsv1.ReferenceRecord) bool { return rec.GetRate() != nil }) {
		p.validators[id] = answer.Validators
	}
	p.count(err, n, readings.Refused)
	return err
}

// date gives rates that hold now the time of their answer.
func (p *Poller) date(fixings []Fixing) {
	now := p.clock.Now().UTC()
	for i := range fixings {
		if f := &fixings[i]; f.Now {
			f.Event, f.Date = now, now.Format(time.DateOnly)
		}
	}
}

// refuseFuture takes out what is dated ahead of the clock: as the newest of all it would never be replaced.
func (p *Poller) refuseFuture(readings *Readings) {
	ahead := p.clock.Now().Add(maxDateAhead)
	readings.Records = slices.DeleteFunc(readings.Records, func(rec *eventsv1.ReferenceRecord) bool {
		f := rec.GetFearGreed()
		if f == nil || f.EventTime <= ahead.UnixNano() {
			return false
		}
		readings.Refused = append(readings.Refused, fmt.Errorf("%w: an index for %s", schemas.Future, time.Unix(0, f.EventTime).UTC().Format(time.DateOnly)))
		return true
	})
	latest := ahead.UTC().Format(time.DateOnly)
	readings.Fixings = slices.DeleteFunc(readings.Fixings, func(f Fixing) bool {
		if f.Date <= latest {
			return false
		}
		readings.Refused = append(readings.Refused, fmt.Errorf("%w: a rate of %s for %s", schemas.Future, f.Quote, f.Date))
		return true
	})
}

// changedFixings are the records of rates that the log does not hold yet, in the order of dates. A rate that is set
// within a day is one of many of its date, and counts when it differs from the last.
func (p *Poller) changedFixings(fixings []Fixing) []*eventsv1.ReferenceRecord {
	slices.SortStableFunc(fixings, func(a, b Fixing) int {
		return cmp.Or(cmp.Compare(a.Date, b.Date), cmp.Compare(a.Base, b.Base), cmp.Compare(a.Quote, b.Quote))
	})
	var records []*eventsv1.ReferenceRecord
	for _, f := range fixings {
		rate, written := p.fixings[fixingID{f.Base, f.Quote, f.Date}]
		if written && rate == f.Rate || !written && f.Date < p.newest {
			continue
		}
		records = append(records, p.source.fixing(f))
	}
	return records
}

// changed are the records that differ from the last ones of the same entity, or repeat them after long.
func (p *Poller) changed(records []*eventsv1.ReferenceRecord) []*eventsv1.ReferenceRecord {
	now := p.clock.Now().UnixNano()
	return slices.DeleteFunc(records, func(rec *eventsv1.ReferenceRecord) bool {
		setSource(rec, p.source.Slug)
		before, ok := p.written[entityKey(rec)]
		return ok && before.digest == digest(rec) && now-before.at < int64(repeatAfter)
	})
}

// note remembers what the log holds.
func (p *Poller) note(rec *eventsv1.ReferenceRecord) {
	if f := rec.GetFixing(); f != nil {
		p.newest = max(p.newest, f.Date)
		p.fixings[fixingID{f.Base, f.Quote, f.Date}] = f.Rate
		return
	}
	id := entityKey(rec)
	if id == "" {
		return
	}
	p.written[id] = lastWritten{digest(rec), ingestTime(rec)}
	if f := rec.GetFearGreed(); f != nil {
		p.newest = max(p.newest, time.Unix(0, f.EventTime).UTC().Format(time.DateOnly))
	}
	if c := rec.GetCoin(); c != nil && p.ranks[c.SourceId] == 0 {
		p.ranks[c.SourceId] = c.Rank
	}
	if m := rec.GetCoinMarket(); m != nil {
		p.ranks[m.SourceId] = m.Rank
	}
}

// fixingsKept is how far back a rate that is reported again is compared with what was written: some days more than a
// source's history of 90 days. All days since 1999 would fill 30 MB, and are not corrected any more.
const fixingsKept = 100 * 24 * time.Hour

// forget drops the rates of old days; they count as written. A map that shrank would keep its room.
func (p *Poller) forget() {
	newest, err := time.Parse(time.DateOnly, p.newest)
	if err != nil {
		return
	}
	oldest := newest.Add(-fixingsKept).Format(time.DateOnly)
	kept := map[fixingID]string{}
	for id, rate := range p.fixings {
		if id.date >= oldest {
			kept[id] = rate
		}
	}
	p.fixings = kept
}

func (p *Poller) deadLetter(ctx context.Context, bad error, body []byte) error {
	digest := sha256.Sum256(body)
	if digest == p.lastDeadLetter {
		return nil
	}
	err := p.out.Dead(ctx, &eventsv1.DeadLetter{
		Reason: string(producers.ReasonOf(bad)), Detail: bad.Error(), Source: p.source.Slug,
		AdapterVersion: p.source.Version, Payload: body,
	})
	if err == nil {
		p.lastDeadLetter = digest
	}
	return err
}

func (p *Poller) count(err error, written int, refused []error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stats.Requests++
	p.stats.Written += int64(written)
	p.stats.Refused += int64(len(refused))
	for _, r := range refused {
		p.stats.ByReason[producers.ReasonOf(r)]++
	}
	p.stats.Err = err
	if err != nil {
		p.stats.Failures++
		return
	}
	p.stats.Heard = p.clock.Now()
}
