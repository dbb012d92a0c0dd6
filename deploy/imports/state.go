package imports

import (
	"context"
	"fmt"
	"time"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// Log keeps candles and files; outbox.ImportLog is one.
type Log interface {
	// Read hands over all records of the log, those of a venue and base in their order.
	Read(ctx context.Context, visit func(*eventsv1.BackfillRecord) error) error
	// Write returns once all records are kept, with the offsets after them by partition. After an error the first ones of each venue
	// and base may be.
	Write(ctx context.Context, recs []*eventsv1.BackfillRecord) (ends map[int32]int64, err error)
	// WriteDeadLetters keeps dead letters, and DeadLetters hands over those of a source.
	WriteDeadLetters(ctx context.Context, letters []*eventsv1.DeadLetter) error
	DeadLetters(ctx context.Context, source string, visit func(*eventsv1.DeadLetter)) error
}

// state is what the log holds of imported files.
type state struct {
	markets map[fileMarket]*imported
	// names are the files of each name that hold a market, by its key without the file; the newest last.
	names map[nameMarket][]*eventsv1.ImportFile
	// files are the records of a whole or half-written file that count, by hash.
	files map[digest]map[marketKey]*eventsv1.ImportFile
}

type fileMarket struct {
	file digest
	marketKey
}

type nameMarket struct {
	name string
	marketKey
}

// imported is how far a market of a file was written: up to a line.
type imported struct{ line uint64 }

func newState() *state {
	return &state{markets: map[fileMarket]*imported{}, names: map[nameMarket][]*eventsv1.ImportFile{}, files: map[digest]map[marketKey]*eventsv1.ImportFile{}}
}

func readState(ctx context.Context, log Log) (*state, error) {
	s := newState()
	if err := log.Read(ctx, func(rec *eventsv1.BackfillRecord) error { s.apply(rec); return nil }); err != nil {
		return nil, fmt.Errorf("reading earlier imports: %w", err)
	}
	return s, nil
}

// apply takes over a record; those of a market come in their order.
func (s *state) apply(rec *eventsv1.BackfillRecord) {
	if c := rec.GetCandle(); c != nil && c.Origin == string(schemas.OriginImport) && len(c.File) == len(digest{}) && !c.Withdrawn {
		key := fileMarket{digest(c.File), marketKey{c.Venue, c.Symbol, time.Duration(c.Interval) * time.Second}}
		if s.markets[key] == nil {
			s.markets[key] = &imported{}
		}
		s.markets[key].line = max(s.markets[key].line, c.Line)
	}
	f := rec.GetImportFile()
	if f == nil || len(f.Sha256) != len(digest{}) {
		return
	}
	key := marketKey{f.Venue, f.Symbol, time.Duration(f.Interval) * time.Second}
	if len(f.Replaces) == len(digest{}) { // should that file come again, it is written again
		before := digest(f.Replaces)
		delete(s.markets, fileMarket{before, key})
		delete(s.files[before], key)
	}
	file := digest(f.Sha256)
	if s.files[file] == nil {
		s.files[file] = map[marketKey]*eventsv1.ImportFile{}
	}
	s.files[file][key] = f
	of := nameMarket{f.Name, key}
	s.names[of] = append(s.names[of], f)
}

// whole returns a record of a file of which all markets were written, nil if some were not, or were not known: they may be now.
func (s *state) whole(file digest) *eventsv1.ImportFile {
	for _, f := range s.files[file] {
		if len(s.files[file]) >= int(f.Markets) && f.PassedMarkets == 0 {
			return f
		}
	}
	return nil
}

// all returns a record of a file of which all markets of a survey were written, nil if some were not.
func (s *state) all(file digest, found *survey) *eventsv1.ImportFile {
	var last *eventsv1.ImportFile
	for _, of := range found.order {
		if last = s.files[file][of.finalKey()]; last == nil {
			return nil
		}
	}
	return last
}

// replaced returns the file of the same name whose candles of a market a file replaces: the newest with another hash, of a time that
// both speak of, that was not replaced itself; nil if there is none.
func (s *state) replaced(name string, file digest, key marketKey, first, last int64) *eventsv1.ImportFile {
	all := s.names[nameMarket{name, key}]
	for i := len(all) - 1; i >= 0; i-- {
		f := all[i]
		if hash := digest(f.Sha256); hash != file && s.files[hash][key] == f && f.FirstTime <= last && f.LastTime >= first {
			return f
		}
	}
	return nil
}

// standing is what was last reported to a start, where files of one name disagree.
type standing int

const (
	ofEarlier standing = iota + 1 // the file that is replaced
	ofNobody                      // it was withdrawn by the file that replaces it
)

// standings finds, of markets of which a file replaces another's candles, which starts still have these.
func standings(ctx context.Context, log Log, file digest, replaced map[marketKey]*eventsv1.ImportFile, of map[marketKey]*surveyed) (map[marketKey]map[int64]standing, error) {
	found := map[marketKey]map[int64]standing{}
	for key := range replaced {
		found[key] = map[int64]standing{}
	}
	err := log.Read(ctx, func(rec *eventsv1.BackfillRecord) error {
		c := rec.GetCandle()
		if c == nil {
			return nil
		}
		key := marketKey{c.Venue, c.Symbol, time.Duration(c.Interval) * time.Second}
		earlier := replaced[key]
		if earlier == nil || c.Start < of[key].first || c.Start > of[key].last {
			return nil
		}
		switch {
		case len(c.File) == len(digest{}) && digest(c.File) == digest(earlier.Sha256) && !c.Withdrawn:
			found[key][c.Start] = ofEarlier
		case len(c.File) == len(digest{}) && digest(c.File) == file && c.Withdrawn:
			found[key][c.Start] = ofNobody
		default:
			delete(found[key], c.Start)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading what is replaced: %w", err)
	}
	return found, nil
}
