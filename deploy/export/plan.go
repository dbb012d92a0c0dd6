package export

import (
	"context"
	"errors"
	"fmt"
	"path"
	"regexp"
	"strings"
	"time"

	"github.com/marketlog/marketlog/stream/history"
)

const (
	day = 24 * time.Hour
	// maxRange and maxFiles bound an export.
	maxRange = 30 * 366 * day
	maxFiles = 100_000
)

// Request is what an export is asked for.
type Request struct {
	// Dataset and Format are names of Datasets and Formats.
	Dataset string `json:"dataset"`
	Format  string `json:"format"`
	// From, inclusive, and To, exclusive, are whole seconds. To is the last midnight (UTC) up to which the tables are complete if it
	// is zero.
	From time.Time `json:"from"`
	To   time.Time `json:"to,omitzero"`
	// Dir is where the files go, an absolute path on the machine of the instance.
	Dir string `json:"dir"`
	// OwnUse exports values too whose terms forbid to pass them on.
	OwnUse bool `json:"ownUse"`

	// lake means that the range is a whole day of a lake.
	lake bool
}

// Validate names all that is wrong.
func (r Request) Validate() error {
	var faults []error
	d, err := DatasetNamed(r.Dataset)
	faults = append(faults, err)
	f, err2 := FormatNamed(r.Format)
	faults = append(faults, err2)
	if err == nil && err2 == nil {
		faults = append(faults, f.writes(d))
	}
	switch {
	case r.From.IsZero():
		faults = append(faults, errors.New("--from is missing: name the start of the range, such as 2026-01-31T00:00:00Z"))
	case !r.To.IsZero() && !r.From.Before(r.To):
		faults = append(faults, fmt.Errorf("--from %s is not before --to %s", r.From.Format(time.RFC3339), r.To.Format(time.RFC3339)))
	case !r.To.IsZero() && r.To.Sub(r.From) > maxRange:
		faults = append(faults, fmt.Errorf("--from %s to %s is longer than 30 years; export parts of it", r.From.Format(time.RFC3339), r.To.Format(time.RFC3339)))
	}
	if !r.From.Equal(r.From.Truncate(time.Second)) || !r.To.Equal(r.To.Truncate(time.Second)) {
		faults = append(faults, errors.New("--from and --to are whole seconds"))
	}
	if !path.IsAbs(r.Dir) {
		faults = append(faults, fmt.Errorf("the directory %q is not an absolute path", r.Dir))
	}
	return errors.Join(faults...)
}

// piece is one file to be.
type piece struct {
	path     string
	venue    string
	from, to time.Time
	rows     int64
}

// slug is how venues are named; what is named otherwise, by whoever writes into the log, makes no path.
var slug = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,63}$`)

// plan finds the files of a range that have rows, in the order of their days and venues. A day without rows has none.
func plan(ctx context.Context, store *history.Store, d Dataset, f Format, r Request, leftOut []string) (all []piece, err error) {
	venue := "''"
	if d.ByVenue {
		venue = "toString(venue)"
	}
	var faults []error
	statement := "SELECT concat(toString(toDate(" + d.time + ")), ' ', " + venue + ") AS file, toString(count()) FROM " + inDatabase(store, d.rows()) +
		" WHERE " + d.within(r.From, r.To, "", leftOut) + " GROUP BY file ORDER BY file SETTINGS " + bounds
	err = each(ctx, store, statement, func(row [2]string) {
		p := piece{}
		var text string
		text, p.venue, _ = strings.Cut(row[0], " ")
		start, err := time.Parse(time.DateOnly, text)
		if err == nil {
			_, err = fmt.Sscan(row[1], &p.rows)
		}
		if err == nil && d.ByVenue && !slug.MatchString(p.venue) {
			err = fmt.Errorf("the venue %q cannot name a file", p.venue)
		}
		faults = append(faults, err)
		if p.from, p.to = start, start.Add(day); p.from.Before(r.From) {
			p.from = r.From.UTC()
		}
		if p.to.After(r.To) {
			p.to = r.To.UTC()
		}
		if p.path = pathOf(d, f, p); r.lake {
			p.path = lakePath(d, f, p)
		}
		all = append(all, p)
	})
	if err := errors.Join(append(faults, err)...); err != nil {
		return nil, fmt.Errorf("counting the rows of %s: %w", d.Name, err)
	}
	if len(all) > maxFiles {
		return nil, fmt.Errorf("%s from %s to %s are %d files, more than %d; export parts of it", d.Name, r.From.Format(time.RFC3339), r.To.Format(time.RFC3339), len(all), maxFiles)
	}
	return all, nil
}

// pathOf names a file by what it holds: a whole day by its date, a part of one by its times too.
func pathOf(d Dataset, f Format, p piece) string {
	name := p.from.Format(time.DateOnly)
	if p.to.Sub(p.from) < day {
		end := p.to.Format("150405")
		if p.to.Truncate(day).Equal(p.to) {
			end = "240000"
		}
		name += "T" + p.from.Format("150405") + "-" + end
	}
	switch {
	case f.tardis: // as its own files are named; SPOT is its name for all spot markets of an exchange
		exchange := tardisExchange(p.venue)
		return path.Join(d.Name, exchange+"_"+d.Name+"_"+name+"_SPOT"+f.suffix)
	case d.ByVenue:
		return path.Join(d.Name, p.venue, name+f.suffix)
	}
	return path.Join(d.Name, name+f.suffix)
}

// lakeFolder begins the directories of a lake.
const lakeFolder = "dataset="

// lakePath names the file of a whole day as readers of hive partitions find it: all files of a directory have the same columns.
func lakePath(d Dataset, f Format, p piece) string {
	name := d.Name
	if d.ByVenue {
		name = p.venue
	}
	return path.Join(lakeFolder+d.Name, "date="+p.from.Format(time.DateOnly), name+f.suffix)
}

// selectOf is the statement whose output is the file.
func selectOf(store *history.Store, d Dataset, f Format, columns []column, p piece, leftOut []string) string {
	var list []string
	for _, c := range columns {
		list = append(list, strings.ReplaceAll(c.expr, "{exchange}", quoted(tardisExchange(p.venue)))+" AS `"+c.name+"`")
	}
	// The rows are ordered before they are given their form: a column of a file may have the name of one of the tables.
	return "SELECT " + strings.Join(list, ", ") + " FROM (SELECT * FROM " + inDatabase(store, d.rows()) + " WHERE " + d.within(p.from, p.to, p.venue, leftOut) +
		" ORDER BY " + d.order + ") SETTINGS " + bounds + ", " + f.settings + " FORMAT " + f.engine
}
