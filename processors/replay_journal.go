package processors

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream/faults"
	"github.com/marketlog/marketlog/stream/history"
	"github.com/marketlog/marketlog/stream/history/shadow"
)

// States of a replay. What follows stateExchanging cannot be given up, only finished.
const (
	statePreparing  = "preparing"  // shadow tables and controls may be there or not
	stateFolding    = "folding"    // they are
	stateExchanging = "exchanging" // the rebuilt tables are whole; some may have the live name
	stateAborting   = "aborting"
	stateDone       = "done"
	stateAborted    = "aborted"
)

// journal is a replay as its journal knows it.
type journal struct {
	Generation uint32 `json:"-"`
	State      string `json:"-"`
	revision   uint64

	View   string    `json:"view"`
	From   time.Time `json:"from,omitzero"`
	To     time.Time `json:"to,omitzero"`
	Verify bool      `json:"verify"`
	// Corrected means that the replay applies corrections: those below an offset, so that one which is taken up applies the same.
	Corrected        bool  `json:"corrected,omitempty"`
	CorrectionsBelow int64 `json:"correctionsBelow,omitempty"`
	// Tables gives the UUIDs of the shadow tables.
	Tables map[string]string `json:"tables,omitempty"`
	// Restating is what the replay has written, or is about to write, of the rows that it changes; nil as long as it changes none.
	Restating *restating `json:"restating,omitempty"`
	// Result is what the comparison found; nil until it has ended. The view v_proofs shows it.
	Result *ReplayResult `json:"result,omitempty"`

	parts map[int32]shadow.Replay
	// attempted is whether this run has begun to record what it changes.
	attempted bool
}

// readJournal returns the unfinished replay, nil if there is none, and the newest generation.
func readJournal(ctx context.Context, store *history.Store) (unfinished *journal, newest uint32, err error) {
	entries, err := shadow.Of(store).Replays(ctx)
	if err != nil {
		return nil, 0, err
	}
	for _, e := range entries {
		newest = max(newest, e.Generation)
		switch {
		case e.Partition >= 0:
			if unfinished != nil && unfinished.Generation == e.Generation {
				unfinished.parts[e.Partition] = e
			}
		case e.State != stateDone && e.State != stateAborted:
			unfinished = &journal{Generation: e.Generation, State: e.State, revision: e.Revision, parts: map[int32]shadow.Replay{}}
			if err := json.Unmarshal(e.Record, unfinished); err != nil {
				return nil, 0, fmt.Errorf("reading the journal of replay %d: %w", e.Generation, err)
			}
		}
	}
	return unfinished, newest, nil
}

func (j *journal) enter(ctx context.Context, store *history.Store, state string) error {
	record, err := json.Marshal(j)
	if err != nil {
		return fmt.Errorf("encoding the journal: %w", err)
	}
	j.State = state
	j.revision++
	return shadow.Of(store).RecordReplay(ctx, shadow.Replay{Generation: j.Generation, Partition: -1, Revision: j.revision, State: state, Record: record})
}

// open takes up the same replay where it was interrupted, or begins it. A comparison that nobody
// finished is in nobody's way.
func (r *Replay) open(ctx context.Context) (*journal, error) {
	j, newest, err := readJournal(ctx, r.History)
	if err != nil {
		return nil, err
	}
	same := j != nil && j.View == r.View && j.From.Equal(r.From) && j.To.Equal(r.To) && j.Verify == r.Verify && j.Corrected == r.Corrected && j.State != stateAborting
	if j != nil && !same {
		if !j.Verify && j.State != stateAborting {
			return nil, fmt.Errorf("replay %d of view %s is unfinished: run it again with the same options to finish it, or --cancel it", j.Generation, j.View)
		}
		if err := r.drop(ctx, j, stateAborted); err != nil {
			return nil, err
		}
		j = nil
	}
	if j == nil {
		j = &journal{Generation: newest + 1, View: r.View, From: r.From, To: r.To, Verify: r.Verify, Corrected: r.Corrected, parts: map[int32]shadow.Replay{}}
		if err := r.correct(ctx, j); err != nil {
			return nil, err
		}
		if err := j.enter(ctx, r.History, statePreparing); err != nil {
			return nil, err
		}
	} else if err := r.emit(&ReplayNote{Note: fmt.Sprintf("going on with replay %d, which was interrupted while %s", j.Generation, j.State)}); err != nil {
		return nil, err
	} else if err := r.correct(ctx, j); err != nil {
		return nil, err
	}
	if j.State != statePreparing {
		return j, nil
	}
	return j, r.prepare(ctx, j)
}

// correct reads the corrections that the replay applies, and warns where it applies none.
func (r *Replay) correct(ctx context.Context, j *journal) (err error) {
	if !slices.ContainsFunc(schemas.ViewTopics(r.View), func(t schemas.Topic) bool { return t.Name == schemas.TopicPrices || t.Name == schemas.TopicCandles }) {
		return nil
	}
	below := int64(math.MaxInt64)
	if j.State != "" {
		below = j.CorrectionsBelow
	}
	if r.corrections, j.CorrectionsBelow, err = ReadCorrections(ctx, r.Log, below); err != nil {
		return err
	}
	if n := len(r.corrections.All()); n > 0 && !r.Corrected && !r.Verify {
		return r.emit(&ReplayNote{Note: fmt.Sprintf("the log has %d corrections: this makes again what was published, and takes back what a replay --corrected restated", n)})
	}
	return nil
}

// prepare makes the shadow tables and has the sinks write them too. From the control on they
// do; what lies before it in the log is the replay's, which reads at least as far.
func (r *Replay) prepare(ctx context.Context, j *journal) error {
	j.Tables = map[string]string{}
	for _, t := range viewTables(j.View) {
		uuid, err := shadow.Of(r.History).Create(ctx, t.Name, j.Generation)
		if err != nil {
			return err
		}
		j.Tables[t.Name] = uuid
	}
	faults.Hit("replay.prepare")
	if !j.Verify {
		if err := r.control(ctx, j, controlPrepare); err != nil {
			return err
		}
	}
	faults.Hit("replay.prepared")
	return j.enter(ctx, r.History, stateFolding)
}

// control writes a control into every partition of the topics concerned. It carries no mark, since no
// input caused it; written twice it is the same.
func (r *Replay) control(ctx context.Context, j *journal, action string) error {
	producer, err := r.Log.NewProducer()
	if err != nil {
		return fmt.Errorf("opening a producer: %w", err)
	}
	defer producer.Close()
	var records []*kgo.Record
	for _, topic := range schemas.ViewTopics(j.View) {
		control, err := topic.NewControl(&eventsv1.Control{Action: action, Generation: j.Generation, View: j.View})
		if err != nil {
			return err
		}
		progress, err := r.History.Progress(ctx, topic.Name, 0)
		if err != nil {
			return err
		}
		// A partition that holds nothing yet has no log time. Kafka would expire a record of 1970 before a
		// sink that is away has read it.
		at := int64(0)
		for _, known := range progress {
			at = max(at, known.LogTime)
		}
		if at == 0 {
			at = time.Now().UnixNano()
		}
		for p := range topic.Partitions {
			rec, err := Output{Topic: topic.Name, Partition: p, Time: at, Record: control}.kafkaRecord()
			if err != nil {
				return fmt.Errorf("encoding a control: %w", err)
			}
			records = append(records, rec)
		}
	}
	if err := producer.ProduceSync(ctx, records...).FirstErr(); err != nil {
		return fmt.Errorf("writing %s into the log: %w", action, err)
	}
	return nil
}

// swap lets the rebuilt tables take the place of the live ones, table by table.
func (r *Replay) swap(ctx context.Context, j *journal) error {
	if j.State != stateExchanging {
		if err := j.enter(ctx, r.History, stateExchanging); err != nil {
			return err
		}
	}
	if err := r.countRestated(ctx, j); err != nil {
		return err
	}
	faults.Hit("replay.exchange")
	for _, t := range viewTables(j.View) {
		if err := shadow.Of(r.History).Exchange(ctx, t.Name, j.Generation, j.Tables[t.Name]); err != nil {
			return err
		}
		faults.Hit("replay.exchanged")
	}
	if err := r.countRestated(ctx, j); err != nil {
		return err
	}
	return r.drop(ctx, j, stateDone)
}

// drop ends the double writing and drops the tables that have the shadows' names. A sink that has
// not read so far yet passes over tables that are gone.
func (r *Replay) drop(ctx context.Context, j *journal, end string) error {
	if end == stateAborted {
		if err := j.enter(ctx, r.History, stateAborting); err != nil {
			return err
		}
	}
	if !j.Verify {
		if err := r.control(ctx, j, controlFinish); err != nil {
			return err
		}
	}
	faults.Hit("replay.finished")
	for _, t := range viewTables(j.View) {
		if err := shadow.Of(r.History).Drop(ctx, t.Name, j.Generation); err != nil {
			return err
		}
	}
	return j.enter(ctx, r.History, end)
}

// Abort removes what an interrupted replay left, and returns its view; empty if there is none. One
// that has begun to exchange tables is finished instead.
func (r *Replay) Abort(ctx context.Context) (view string, finished bool, err error) {
	j, _, err := readJournal(ctx, r.History)
	if err != nil || j == nil {
		return "", false, err
	}
	if j.State == stateExchanging {
		return j.View, true, r.swap(ctx, j)
	}
	return j.View, false, r.drop(ctx, j, stateAborted)
}

// Settle finishes a replay that was interrupted between two exchanges, so that all tables of a view are
// of one generation; any other is left to be taken up. It returns the view, empty if there was nothing.
func (r *Replay) Settle(ctx context.Context) (view string, err error) {
	j, _, err := readJournal(ctx, r.History)
	if err != nil || j == nil || j.State != stateExchanging {
		return "", err
	}
	return j.View, r.swap(ctx, j)
}
