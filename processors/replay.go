package processors

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream"
	"github.com/marketlog/marketlog/stream/faults"
	"github.com/marketlog/marketlog/stream/history"
	"github.com/marketlog/marketlog/stream/history/shadow"
)

// rebuilt is a table that a replay rebuilds.
type rebuilt struct {
	schemas.Table
	topic schemas.Topic
}

// viewTables are the tables that a replay of a view rebuilds.
func viewTables(view string) (tables []rebuilt) {
	for _, topic := range schemas.ViewTopics(view) {
		for _, t := range topic.Tables {
			if t.Rebuilt() {
				tables = append(tables, rebuilt{t, topic})
			}
		}
	}
	return tables
}

// Replay rebuilds a view from the log beside the live one, compares the two, and lets the rebuilt
// one take its place while live goes on writing. Its journal is kept in history: killed at any
// moment, the same replay goes on where it was, or Abort removes what it left.
//
// One replay runs at a time on an installation; its caller sees to that.
type Replay struct {
	View string
	// From and To bound the rows that are rebuilt by log time, From included; zero for no bound.
	From, To time.Time
	// Verify compares only.
	Verify bool
	// Corrected applies corrections over their validity, whenever they were written; without it what was published is made again. For views
	// prices and candles.
	Corrected bool

	// Unit and Minutes are the very ones that are live; a topic of rows of minutes that no fold is here for has no rows.
	Unit    Unit
	Minutes []*Minutes
	// Reresolve resolves a recorded tick again, at the log time now; it must not change it. For view ticks.
	Rejoin  func(recorded *eventsv1.ResolvedTick, now int64) *eventsv1.ResolvedTick
	Log     stream.Config
	History *history.Store
	Logger  *slog.Logger
	// MostRestated is how many rows of a table that change are recorded one by one; 0 for the default. All are counted.
	MostRestated int64
	// BatchRows is how many rows are inserted at once; 0 for the default. The result does not depend on it.
	BatchRows int
	// Emit takes what happens meanwhile: *ReplayProgress, *history.Difference, *ReplayChange and
	// *ReplayNote.
	Emit func(line any) error

	// corrections are those that are applied with Corrected, else those that are not.
	corrections *schemas.Corrections
	emitting    sync.Mutex
}

// emit hands on what happens, one line at a time.
func (r *Replay) emit(line any) error {
	r.emitting.Lock()
	defer r.emitting.Unlock()
	return r.Emit(line)
}

// replayBatchRows bounds the memory of each partition that is folded.
const replayBatchRows = 20_000

// mostDifferences is how many differing keys are reported; all are counted.
const mostDifferences = 100

// ReplayProgress says how far one step of a replay has come.
type ReplayProgress struct {
	Step string `json:"step"`
	// Done of Total records or rows.
	Done  int64 `json:"done"`
	Total int64 `json:"total"`
	// Rate is per second of this step; Left is the time left at it, in seconds.
	Rate float64 `json:"rate"`
	Left float64 `json:"left"`
}

// ReplayNote is something to know.
type ReplayNote struct {
	Note string `json:"note"`
}

// ReplayResult is the end of a replay.
type ReplayResult struct {
	View string `json:"view"`
	// Compared counts keys, Differing those under which live and rebuilt rows differ.
	Compared  int64 `json:"compared"`
	Differing int64 `json:"differing"`
	// Outside counts live rows whose causes the log no longer holds, or that the given times leave out.
	Outside int64 `json:"outside"`
	// Restated counts rows that were added, removed or changed, which the view v_restatements lists; without Verify only.
	Restated int64   `json:"restated"`
	Seconds  float64 `json:"seconds"`
	// Corrected means that corrections were applied over their validity: what differs is then no fault of a row.
	Corrected bool `json:"corrected,omitempty"`
}

// Validate refuses a view that cannot be replayed and times that leave nothing.
func (r *Replay) Validate() error {
	if schemas.ViewTopics(r.View) == nil {
		return fmt.Errorf("view %q cannot be replayed; use one of %s", r.View, strings.Join(schemas.Views(), ", "))
	}
	if r.View == schemas.ViewReference && !r.Verify {
		return fmt.Errorf("view %q cannot be rebuilt: its rows are what the log contains; compare them with --verify", r.View)
	}
	if r.View == schemas.ViewReference && !(r.From.IsZero() && r.To.IsZero()) {
		return fmt.Errorf("view %q is compared whole: leave out --from and --to", r.View)
	}
	if r.Corrected && r.View != schemas.ViewPrices && r.View != schemas.ViewCandles {
		return fmt.Errorf("view %q cannot be replayed with --corrected: use it with %s or %s", r.View, schemas.ViewPrices, schemas.ViewCandles)
	}
	if !r.To.IsZero() && !r.To.After(r.From) {
		return fmt.Errorf("replaying to %s leaves nothing from %s on", r.To.Format(time.RFC3339), r.From.Format(time.RFC3339))
	}
	return nil
}

// Run replays, or goes on with the same replay that was interrupted.
func (r *Replay) Run(ctx context.Context) (ReplayResult, error) {
	began := time.Now()
	result := ReplayResult{View: r.View, Corrected: r.Corrected}
	if err := r.Validate(); err != nil {
		return result, err
	}
	j, err := r.open(ctx)
	if err != nil {
		return result, err
	}
	if j.State != stateExchanging {
		if result, err = r.rebuild(ctx, j); err != nil {
			return result, err
		}
		result.Seconds = time.Since(began).Seconds()
		j.Result = &result
	}
	if r.Verify {
		err = r.drop(ctx, j, stateDone)
	} else {
		err = r.swap(ctx, j)
	}
	result.Seconds = time.Since(began).Seconds()
	return result, err
}

// rebuild folds the log into the shadow tables and compares.
func (r *Replay) rebuild(ctx context.Context, j *journal) (ReplayResult, error) {
	result := ReplayResult{View: r.View, Corrected: r.Corrected}
	parts, err := r.replayFolds(ctx, j)
	if err != nil {
		return result, err
	}
	reached, err := r.awaitLive(ctx, j, parts)
	if err != nil {
		return result, err
	}
	if err := r.reportChanges(parts); err != nil {
		return result, err
	}
	compared, err := r.compareTables(ctx, j, parts, reached)
	if err != nil {
		return result, err
	}
	reported := 0
	for _, c := range compared {
		differences := c.found.Differences
		differences = differences[:min(len(differences), mostDifferences-reported)]
		for i := range differences {
			if err := r.emit(&differences[i]); err != nil {
				return result, err
			}
		}
		reported += len(differences)
		result.Compared += c.found.Compared
		result.Differing += c.found.Differing
		result.Outside += c.found.Outside
		if !r.To.IsZero() {
			result.Outside += c.found.Beyond
		}
		if !r.Verify {
			if c.found.Differing > 0 {
				restated, err := r.restate(ctx, j, c.table, parts, c.bounds)
				if err != nil {
					return result, err
				}
				result.Restated += restated
			}
			if err := shadow.Of(r.History).CarryOver(ctx, c.table.Name, j.Generation, c.made); err != nil {
				return result, err
			}
			faults.Hit("replay.carried")
		}
	}
	return result, nil
}

// compared is a table and its shadow side by side.
type compared struct {
	table rebuilt
	// made are the bounds of the rows that the replay makes, bounds those of the rows that were compared.
	made, bounds []shadow.Bounds
	found        shadow.Comparison
}

// compareTables compares all tables of the view: most are small, and take longer to ask about than to read.
func (r *Replay) compareTables(ctx context.Context, j *journal, parts []*partReplay, reached map[topicPartition]int64) ([]compared, error) {
	meter := r.meter("comparing")
	tables := viewTables(r.View)
	all := make([]compared, len(tables))
	var steps []func(context.Context) error
	for i, table := range tables {
		c := &all[i]
		c.table = table
		for _, p := range causesOf(parts, table.topic) {
			made := p.bounds(table)
			bounds := made
			if at, ok := reached[topicPartition{table.topic.Name, p.Partition}]; ok && at < bounds.Until {
				bounds.Until, bounds.UntilTime = at, math.MinInt64
			}
			c.made, c.bounds = append(c.made, made), append(c.bounds, bounds)
		}
		steps = append(steps, func(ctx context.Context) (err error) {
			c.found, err = shadow.Of(r.History).Compare(ctx, table.Name, j.Generation, c.bounds, mostDifferences, meter.part())
			return err
		})
	}
	return all, sideBySide(ctx, steps)
}

// causesOf are the parts of a replay that make the rows of a topic's tables, by their partition.
func causesOf(parts []*partReplay, topic schemas.Topic) []*partReplay {
	return slices.DeleteFunc(slices.Clone(parts), func(p *partReplay) bool {
		return p.makes != "" && p.makes != topic.Name || p.makes == "" && !fromTicks(topic)
	})
}

// fromTicks reports whether the records of a topic with a view are caused by those of ticks.v1: what else is derived, folds
// of log minutes make.
func fromTicks(topic schemas.Topic) bool { return topic.Derived && !topic.Minutes }

// topicPartition is a partition of a topic.
type topicPartition struct {
	topic     string
	partition int32
}

// liveStall is how long live sinks may make no progress before they count as not running.
const liveStall = 15 * time.Second

// awaitLive waits until the sinks have inserted what the replay derived last. Where they make no progress it
// returns the input offset below which they have inserted everything, for the partitions concerned.
func (r *Replay) awaitLive(ctx context.Context, j *journal, parts []*partReplay) (map[topicPartition]int64, error) {
	meter := r.meter("waiting for the live tables")
	var behind map[topicPartition]int64
	moved, last := time.Now(), int64(-1)
	for {
		behind = map[topicPartition]int64{}
		var done, total int64
		applied := true
		for _, topic := range schemas.ViewTopics(r.View) {
			progress, err := r.History.Progress(ctx, topic.Name, 0)
			if err != nil {
				return nil, err
			}
			for _, p := range parts {
				last, ok := p.Last[topic.Name]
				if !ok {
					continue
				}
				at, caught := inserted(topic, progress[p.Partition], last)
				total += last.Offset
				done += min(at, last.Offset)
				if !caught {
					behind[topicPartition{topic.Name, p.Partition}] = at
				}
				applied = applied && progress[p.Partition].Replay == j.Generation
			}
		}
		applied = applied || r.Verify || r.To.IsZero()
		if len(behind) == 0 && applied {
			return nil, nil
		}
		if done > last {
			moved, last = time.Now(), done
		}
		meter.set(done, total)
		if time.Since(moved) > liveStall {
			break
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("waiting for the live tables: %w", ctx.Err())
		case <-time.After(100 * time.Millisecond):
		}
	}
	if !r.Verify && !r.To.IsZero() {
		return nil, fmt.Errorf("the live tables do not advance in %d partitions: rows behind --to cannot be carried over; start the processors first", len(behind))
	}
	return behind, r.emit(&ReplayNote{Note: fmt.Sprintf("the live tables do not advance in %d partitions: what they have not inserted is not compared", len(behind))})
}

// inserted is the input offset below which a sink has inserted all rows of a partition, and whether
// those of the last mark are among them. Rows that a replay does not fold are known by their own offset.
func inserted(topic schemas.Topic, p history.Progress, last markEntry) (below int64, caught bool) {
	if !topic.Refolded() {
		return p.Next, p.Next > last.Offset
	}
	mark := p.Marks[last.Partition]
	return mark.GetOffset(), mark != nil && !last.mark().After(mark)
}

// controls of a replay, written into the topics whose sinks it concerns.
const (
	// controlPrepare makes sinks write the tables of the replay too.
	controlPrepare = "prepare"
	controlFinish  = "finish"
)
