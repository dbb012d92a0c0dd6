package schemas

import (
	"math"
	"slices"
	"time"
)

// Table is a table of ClickHouse whose rows are made of the records of one topic, or of all topics with the same message.
type Table struct {
	Name string
	// CompleteFrom and CompleteUntil bound the rows of a replay; nil for a table that no replay rebuilds. A replay that
	// begins where the clocks had come to some time has all rows from CompleteFrom on, and one that ends there has all rows
	// before CompleteUntil.
	CompleteFrom, CompleteUntil Bound
	// KeptDays is how many days of log time the table keeps; 0 keeps all. What a source still gives is written again within a
	// week, so the newest of each thing is always kept.
	KeptDays int
	// DroppedBy is the column of time by which the oldest rows are dropped where the disk budget is spent, DroppedIn how long the partitions are that
	// are dropped at once: DroppedHourly or DroppedDaily. Empty for a table that is never cut back for want of room.
	DroppedBy string
	DroppedIn time.Duration
	// Stated are the columns that a source states of a moment of the past, of a table in which a later statement about the same moment
	// replaces an earlier one: if it is another one, the sink records a restatement. Nil for all other tables.
	Stated []string
}

// Bound is a time of a table's key, Unix seconds, by how far the clocks had come: now and watermark, Unix nanoseconds.
type Bound func(now, watermark int64) int64

// Rebuilt reports whether a replay makes the table again.
func (t Table) Rebuilt() bool { return t.CompleteFrom != nil }

// keeping drops partitions whose rows are all older than a number of days.
func (t Table) keeping(days int) Table {
	t.KeptDays = days
	return t
}

// How much time is dropped of a table at once.
const (
	DroppedHourly = time.Hour
	DroppedDaily  = day
)

// droppedBy drops the oldest hours or days of a column of time where the disk budget is spent.
func (t Table) droppedBy(column string, in time.Duration) Table {
	t.DroppedBy, t.DroppedIn = column, in
	return t
}

// stating names the columns that a source may later state otherwise.
func (t Table) stating(columns ...string) Table {
	t.Stated = columns
	return t
}

// filled is a table that no replay rebuilds.
func filled(name string) Table { return Table{Name: name} }

// unordered is a table whose rows come in no order of time: the offset alone says which are made.
func unordered(name string) Table {
	return Table{
		Name:          name,
		CompleteFrom:  func(int64, int64) int64 { return math.MaxInt64 },
		CompleteUntil: func(int64, int64) int64 { return math.MinInt64 },
	}
}

// bySecond is a table whose rows are of the moment in which they are caused.
func bySecond(name string) Table {
	return Table{Name: name, CompleteFrom: afterSecond, CompleteUntil: afterSecond}
}

// byHourSoFar is a table of a row an hour, by its start: that of the hour that goes on is still replaced.
func byHourSoFar(name string) Table {
	return Table{
		Name:          name,
		CompleteFrom:  func(now, _ int64) int64 { return seconds(Hour(now) + int64(time.Hour)) },
		CompleteUntil: func(now, _ int64) int64 { return seconds(Hour(now)) },
	}
}

// byHour and byDay are tables of a row an hour or a day, by its start, which is caused in the first minute that ends with
// it or after it.
func byHour(name string) Table { return byEnded(name, time.Hour) }

func byDay(name string) Table { return byEnded(name, day) }

func byEnded(name string, length time.Duration) Table {
	after := func(now, _ int64) int64 { return seconds(now-int64(length)) + 1 }
	return Table{Name: name, CompleteFrom: after, CompleteUntil: after}
}

// byClosed is a table of minutes that the watermark has closed.
func byClosed(name string) Table {
	closed := func(_, watermark int64) int64 { return seconds(Minute(max(watermark-int64(AllowedLateness), 0))) }
	return Table{Name: name, CompleteFrom: closed, CompleteUntil: closed}
}

func seconds(at int64) int64 { return at / int64(time.Second) }

func afterSecond(now, _ int64) int64 { return seconds(now) + 1 }

// Refolded reports whether a replay makes the rows of the topic by folding its input again: all but those of records that are
// not derived, which are read again, and of ticks, which are resolved again.
func (t Topic) Refolded() bool { return t.Derived && t.View != "" && t.View != ViewTicks }

// ViewTopics are the topics whose tables a replay of a view makes, nil for a view that does not exist.
func ViewTopics(view string) []Topic {
	var rows []Topic
	for _, t := range Topics {
		if view != "" && t.View == view || view == ViewAll && t.Refolded() {
			rows = append(rows, t)
		}
	}
	return rows
}

// Views are the views of a replay: those that ViewAll consists of, then ViewAll, then the others.
func Views() (all []string) {
	folded, others := FoldedViews(), []string(nil)
	for _, t := range Topics {
		if t.View != "" && !slices.Contains(folded, t.View) && !slices.Contains(others, t.View) {
			others = append(others, t.View)
		}
	}
	slices.Reverse(others)
	return slices.Concat(folded, []string{ViewAll}, others)
}

// FoldedViews are the views that ViewAll consists of.
func FoldedViews() (views []string) {
	for _, t := range Topics {
		if t.Refolded() && !slices.Contains(views, t.View) {
			views = append(views, t.View)
		}
	}
	return views
}

// TableTopics are the topics whose records fill a table, in the order of the topic table: that of its row, and all with the
// same message. None for a table that no sink writes.
func TableTopics(table string) []string {
	var message string
	for _, t := range Topics {
		if slices.ContainsFunc(t.Tables, func(of Table) bool { return of.Name == table }) {
			message = t.Message()
		}
	}
	if message == "" {
		return nil
	}
	var names []string
	for _, t := range Topics {
		if len(t.Tables) > 0 && t.Message() == message {
			names = append(names, t.Name)
		}
	}
	return names
}

// SinkTopics are the topics that have tables.
func SinkTopics() []string {
	var names []string
	for _, t := range Topics {
		if len(t.Tables) > 0 {
			names = append(names, t.Name)
		}
	}
	return names
}
