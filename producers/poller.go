package producers

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

const (
	// retryFirst is the pause after a first failed round; it doubles with each further one, up to the
	// source's interval.
	retryFirst = 30 * time.Second
	// maxDateAhead is how far a date may lie ahead: it begins up to 14 hours earlier east of Greenwich.
	maxDateAhead = 24 * time.Hour
)

// SourceOutbox takes what a polled source said into the log. Append and Dead return once the log has it,
// or with an error when ctx ends.
type SourceOutbox interface {
	// Known hands over what the log holds of this source, oldest first, as far back as anything can
	// matter to the next answer.
	Known(ctx context.Context, visit func(*eventsv1.ReferenceRecord)) error
	Append(ctx context.Context, records ...*eventsv1.ReferenceRecord) error
	Dead(ctx context.Context, letter *eventsv1.DeadLetter) error
}

// Poller reads one source into the log: what changed, and the outcome of every request. A fixing that is in
// the log already is not written again, also not by the process that follows a killed one.
type Poller struct {
	source Source
	url    string
	fetch  Getter
	out    SourceOutbox
	clock  Clock
	log    *slog.Logger

	// newest is the last date of which anything was written. What is older was written with it or before:
	// answers are written in the order of their dates.
	newest  string
	written map[fixingID]string
	// validators are those of the last answer to each path that was wholly written.
	validators map[string]Validators
	// buried is the digest of the last body in the dead letters: a source that goes on sending it would
	// fill them.
	buried [sha256.Size]byte

	mu    sync.Mutex
	stats SourceStats
}

type fixingID struct{ base, quote, date string }

// SourceStats is how a polled source is doing. Counters run from the start of the process.
type SourceStats struct {
	// Requests were made, Failures of them brought nothing that could be read.
	Requests, Failures int64
	// Written are rows that were new or changed, Refused rows that could not be read.
	Written, Refused int64
	// Heard is when an answer was last read, also one that said that nothing changed; zero before the first.
	Heard time.Time
	// Err is what the last request failed with, nil if it did not.
	Err error
}

// NewPoller prepares a source; url replaces its default unless it is empty.
func NewPoller(s Source, url string, fetch Getter, out SourceOutbox, clock Clock, log *slog.Logger) *Poller {
	return &Poller{
		source: s, url: cmp.Or(strings.TrimRight(url, "/"), s.URL), fetch: fetch, out: out, clock: clock, log: log.With("source", s.Slug),
		written: map[fixingID]string{}, validators: map[string]Validators{},
	}
}

// Stats may be called at any time.
func (p *Poller) Stats() SourceStats {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stats
}

// Run reads what the log holds, then polls until ctx ends, which is no error.
func (p *Poller) Run(ctx context.Context) error {
	err := p.out.Known(ctx, func(rec *eventsv1.ReferenceRecord) {
		if f := rec.GetFixing(); f != nil {
			p.note(Fixing{f.Base, f.Quote, f.Rate, f.Date})
		}
	})
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return fmt.Errorf("reading what the log holds of %s: %w", p.source.Slug, err)
	}
	history := p.source.History
	pause := retryFirst
	for {
		history = p.round(ctx, history)
		failed := len(history) > 0
		if len(history) == 0 {
			failed = len(p.round(ctx, p.source.Paths)) > 0
		}
		wait := p.source.Interval
		if failed {
			wait = min(pause, wait)
			pause = min(2*pause, p.source.Interval)
		} else {
			pause = retryFirst
		}
		if Sleep(ctx, p.clock, wait) != nil {
			return nil
		}
	}
}

// round reads paths and returns those from the first that failed on: what is older is written first.
func (p *Poller) round(ctx context.Context, paths []string) (left []string) {
	for i, path := range paths {
		if err := p.poll(ctx, path); err != nil {
			if ctx.Err() == nil {
				p.log.Warn("reading a source failed", "path", path, "error", err)
			}
			return paths[i:]
		}
	}
	return nil
}

// poll makes one request, writes what is new in the answer, and then the outcome.
func (p *Poller) poll(ctx context.Context, path string) error {
	answer, err := p.fetch.Get(ctx, p.url+path, p.validators[path])
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var said Readings
	switch {
	case err != nil:
	case answer.Status == http.StatusNotModified:
	default:
		if err = p.source.Decode(path, answer.Body, &said); err != nil {
			said = Readings{}
		}
		p.refuseFuture(&said)
		if bad := errors.Join(append(said.Refused, err)...); bad != nil {
			if err := p.bury(ctx, bad, answer.Body); err != nil {
				return err
			}
		}
	}
	records := p.changes(said.Fixings)
	outcome := &eventsv1.Fetch{
		Source: p.source.Slug, Url: p.url + path, Status: int32(answer.Status),
		Started: answer.Started.UnixNano(), Duration: int64(answer.Duration), Rows: int64(len(said.Fixings)),
	}
	if err != nil {
		// It may quote what a server sent; a string of the log is UTF-8.
		outcome.Error = strings.ToValidUTF8(err.Error()[:min(len(err.Error()), maxDeadDetail)], "\uFFFD")
	}
	n := len(records)
	records = append(records, &eventsv1.ReferenceRecord{Body: &eventsv1.ReferenceRecord_Fetch{Fetch: outcome}})
	if err := p.out.Append(ctx, records...); err != nil {
		return err
	}
	for _, rec := range records[:n] {
		f := rec.GetFixing()
		p.note(Fixing{f.Base, f.Quote, f.Rate, f.Date})
	}
	if err == nil {
		p.validators[path] = answer.Validators
	}
	p.count(err, n, len(said.Refused))
	return err
}

// refuseFuture takes out what is dated ahead of the clock: as the newest of all it would stand for ever.
func (p *Poller) refuseFuture(said *Readings) {
	latest := p.clock.Now().Add(maxDateAhead).UTC().Format(time.DateOnly)
	said.Fixings = slices.DeleteFunc(said.Fixings, func(f Fixing) bool {
		if f.Date <= latest {
			return false
		}
		said.Refused = append(said.Refused, fmt.Errorf("%w: a rate of %s for %s", schemas.Future, f.Quote, f.Date))
		return true
	})
}

// changes are the records of what the log does not hold yet, in the order of dates.
func (p *Poller) changes(fixings []Fixing) []*eventsv1.ReferenceRecord {
	slices.SortStableFunc(fixings, func(a, b Fixing) int {
		return cmp.Or(cmp.Compare(a.Date, b.Date), cmp.Compare(a.Base, b.Base), cmp.Compare(a.Quote, b.Quote))
	})
	var records []*eventsv1.ReferenceRecord
	for _, f := range fixings {
		rate, written := p.written[fixingID{f.Base, f.Quote, f.Date}]
		if written && rate == f.Rate || !written && f.Date < p.newest {
			continue
		}
		records = append(records, &eventsv1.ReferenceRecord{Body: &eventsv1.ReferenceRecord_Fixing{Fixing: &eventsv1.Fixing{
			Source: p.source.Slug, Base: f.Base, Quote: f.Quote, Rate: f.Rate, Date: f.Date,
		}}})
	}
	return records
}

func (p *Poller) note(f Fixing) {
	p.newest = max(p.newest, f.Date)
	p.written[fixingID{f.Base, f.Quote, f.Date}] = f.Rate
}

func (p *Poller) bury(ctx context.Context, bad error, body []byte) error {
	digest := sha256.Sum256(body)
	if digest == p.buried {
		return nil
	}
	err := p.out.Dead(ctx, &eventsv1.DeadLetter{
		Reason: string(ReasonOf(bad)), Detail: bad.Error(), Source: p.source.Slug,
		AdapterVersion: p.source.Version, Payload: body,
	})
	if err == nil {
		p.buried = digest
	}
	return err
}

func (p *Poller) count(err error, written, refused int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stats.Requests++
	p.stats.Written += int64(written)
	p.stats.Refused += int64(refused)
	p.stats.Err = err
	if err != nil {
		p.stats.Failures++
		return
	}
	p.stats.Heard = p.clock.Now()
}
