package operations

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/marketlog/marketlog/deploy/admin"
	"github.com/marketlog/marketlog/deploy/instance"
	"github.com/marketlog/marketlog/deploy/supervise"
	"github.com/marketlog/marketlog/processors"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream"
	"github.com/marketlog/marketlog/stream/history"
	"github.com/marketlog/marketlog/stream/history/past"
	"github.com/marketlog/marketlog/stream/history/shadow"
)

// partsFile lists the parts that the embedded engine's tables had last.
const partsFile = "parts.json"

// partsEvery is how often the parts are listed: what is inserted and lost within it goes unnoticed.
const partsEvery = 10 * time.Second

// TablesRole compares the parts that are there with those that were, before anything is inserted. The role fills what is
// lost from the log, then keeps the list.
func TablesRole(ctx context.Context, in *instance.Instance, store *history.Store) (supervise.Role, error) {
	known, err := readParts(in.Dir.Path(partsFile))
	if err != nil {
		in.Log.Warn("reading the expected rows of the tables failed", "error", err)
	}
	lost, err := store.LostParts(ctx, known, in.Clock.Now())
	if err != nil {
		return supervise.Role{}, err
	}
	for _, p := range lost {
		in.Log.Error("rows are lost: a part of a table is missing", "table", p.Table, "partition", p.Partition, "rows", p.Rows)
	}
	if len(lost) > 0 {
		in.Lost.Set(lostText(lost) + "; they are being written again from the log")
	}
	return supervise.Role{Name: "tables", Run: func(ctx context.Context) error {
		if len(lost) > 0 {
			if err := refillLost(ctx, in, store, lost); err != nil || ctx.Err() != nil {
				return supervise.Stopped(ctx, err) // the list stays as it is, so the next start finds the same
			}
			lost = nil
		}
		return KeepParts(ctx, in, store)
	}}, nil
}

// CheckedTables is what tables.check reports: how many parts were read, and what is wrong with one.
type CheckedTables struct {
	Parts int               `json:"parts,omitempty"`
	Fault history.PartFault `json:"fault,omitzero"`
}

// tablesVerbs look at the tables: tables.check reads all parts and compares them with their checksums, tables.growth says how
// fast the largest tables grow.
func tablesVerbs(in *instance.Instance) []admin.Command {
	return []admin.Command{
		{Name: "tables.check", Run: func(ctx context.Context, _ json.RawMessage, emit func(any) error) error {
			store, err := in.History(ctx)
			if err != nil {
				return err
			}
			parts, faults, err := store.CheckParts(ctx)
			for _, f := range faults {
				if err := emit(CheckedTables{Fault: f}); err != nil {
					return err
				}
			}
			if err != nil {
				return err
			}
			return emit(CheckedTables{Parts: parts})
		}},
		{Name: "disk.budget", Run: func(_ context.Context, _ json.RawMessage, emit func(any) error) error {
			if in.Budget == nil {
				return nil
			}
			if status, known := in.Budget.Status(); known {
				return emit(status)
			}
			return nil
		}},
		{Name: "tables.growth", Run: func(ctx context.Context, _ json.RawMessage, emit func(any) error) error {
			store, err := in.History(ctx)
			if err != nil {
				return err
			}
			growth, err := store.Growth(ctx)
			for _, g := range growth {
				err = errors.Join(err, emit(g))
			}
			return err
		}},
	}
}

func lostText(lost []history.Part) string {
	rows := map[string]uint64{}
	var tables []string
	for _, p := range lost {
		if !slices.Contains(tables, p.Table) {
			tables = append(tables, p.Table)
		}
		rows[p.Table] += p.Rows
	}
	for i, table := range tables {
		tables[i] = fmt.Sprintf("%d rows of %s", rows[table], table)
	}
	return strings.Join(tables, ", ") + " are gone"
}

// refillLost writes the rows of the tables that lost some again. It needs nobody's consent, since rows that are there are
// only replaced by themselves; but after a replay the log may still have rows that the replay left out.
func refillLost(ctx context.Context, in *instance.Instance, store *history.Store, lost []history.Part) error {
	// What is folded of the past needs no log: its own rows may be among the lost ones, or what they are made of.
	if err := past.NewFold(store).Mark(ctx); err != nil {
		return err
	}
	replays, err := shadow.Of(store).Replays(ctx)
	if err != nil {
		return err
	}
	if len(replays) > 0 {
		in.Lost.Set(lostText(lost) + "; since a view was replaced by a replay, they are not written again by themselves: `marketlog rebuild` does it, and `marketlog replay` for the view afterwards")
		for in.Lost.Waiting() != "" { // until the command was given
			select {
			case <-time.After(time.Second):
			case <-ctx.Done():
				return nil
			}
		}
		return nil
	}
	var topics []string
	for _, p := range lost {
		for _, topic := range schemas.TableTopics(p.Table) {
			if !slices.Contains(topics, topic) {
				topics = append(topics, topic)
			}
		}
	}
	began := time.Now()
	var records int64
	for _, topic := range topics {
		n, err := (&processors.Refill{Topic: topic, Log: in.Stream, History: store, Logger: in.Log}).Run(ctx)
		if err != nil {
			return err
		}
		records += n
	}
	if err := errors.Join(expire(ctx, in, store), past.NewFold(store).Mark(ctx)); err != nil {
		return err
	}
	gaps, err := BeyondLog(ctx, in, lost)
	if err == nil {
		err = in.WriteGaps(ctx, gaps)
	}
	if err != nil {
		return err
	}
	for _, gap := range gaps {
		in.Log.Error("rows are permanently lost: the log starts after them", "table", gap.Symbol,
			"from", time.Unix(0, gap.FromTime).UTC(), "to", time.Unix(0, gap.ToTime).UTC())
	}
	in.Log.Warn("restoring lost rows from the log, as far as it has them", "lost", lostText(lost), "records", records, "duration", time.Since(began).Round(time.Millisecond))
	in.Lost.Set("")
	return nil
}

// BeyondLog are the gaps of lost parts that may hold rows of records which the log has no more: from the beginning of the
// part's time to the oldest record that is kept in every partition of its topics.
func BeyondLog(ctx context.Context, in *instance.Instance, lost []history.Part) (gaps []*eventsv1.Gap, err error) {
	begins := map[string]time.Time{}
	for _, p := range lost {
		var oldest time.Time
		for _, topic := range schemas.TableTopics(p.Table) {
			if _, known := begins[topic]; !known {
				if begins[topic], err = stream.CompleteSince(ctx, in.Stream, topic); err != nil {
					return nil, err
				}
			}
			if begins[topic].After(oldest) {
				oldest = begins[topic]
			}
		}
		from, to := p.Span()
		if !from.Before(oldest) {
			continue
		}
		if to.After(oldest) {
			to = oldest
		}
		if from.IsZero() {
			from = to
		}
		gaps = append(gaps, &eventsv1.Gap{Venue: instance.VenueTables, Symbol: p.Table, Reason: instance.ReasonDamage, FromTime: from.UnixNano(), ToTime: to.UnixNano()})
	}
	return gaps, nil
}

// expire drops what a refill brought back of what need not be kept.
func expire(ctx context.Context, in *instance.Instance, store *history.Store) error {
	at, err := store.Progress(ctx, schemas.TopicTicks, 0)
	if err != nil || len(at) == 0 {
		return err
	}
	var newest int64
	for _, p := range at {
		newest = max(newest, p.LogTime)
	}
	return store.Expire(ctx, "", newest)
}

// KeepParts lists the parts until ctx ends.
func KeepParts(ctx context.Context, in *instance.Instance, store *history.Store) error {
	ticker := time.NewTicker(partsEvery)
	defer ticker.Stop()
	var kept []history.Part
	var logged time.Time
	for {
		parts, err := store.Parts(context.WithoutCancel(ctx))
		if err != nil {
			return err
		}
		if !slices.Equal(parts, kept) {
			err := writeParts(in.Dir.Path(partsFile), parts)
			switch {
			case err == nil:
				kept = parts
			case time.Since(logged) >= time.Minute: // a full disk: the list that is there stays, and is written again with room
				logged = time.Now()
				in.Log.Warn("recording the inserted rows failed: a loss of them would go undetected", "error", err)
			}
		}
		if ctx.Err() != nil {
			return nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done(): // once more, for what was inserted since
		}
	}
}

func readParts(path string) (parts []history.Part, err error) {
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = json.Unmarshal(content, &parts)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the list of parts: %w", err)
	}
	return parts, nil
}

func writeParts(path string, parts []history.Part) error {
	content, err := json.Marshal(parts)
	if err == nil {
		err = os.WriteFile(path+".new", content, 0o600)
	}
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		return fmt.Errorf("writing the list of parts: %w", err)
	}
	return nil
}
