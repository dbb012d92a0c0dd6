package deploy

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/marketlog/marketlog/deploy/embedded"
	"github.com/marketlog/marketlog/processors"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream"
)

// reasonDamage is a gap's reason where records of the log itself are lost, or rows that it has no records of any more;
// venueLog and venueTables are what stands for the log and for the tables there.
const (
	reasonDamage = "damage"
	venueLog     = "log"
	venueTables  = "tables"
)

// rebuildLine is one line of a rebuild.
type rebuildLine struct {
	// Topic was read again, of which Records had rows.
	Topic   string `json:"topic,omitempty"`
	Records int64  `json:"records,omitempty"`
	// Lost is a damage that is settled: what of it cannot be mended.
	Lost string `json:"lost,omitempty"`
}

// rebuildVerb writes the rows of all views again from what the log has, and settles the log's damages.
func rebuildVerb(in *Instance) Verb {
	return Verb{Name: "rebuild", Long: true, Run: func(ctx context.Context, _ json.RawMessage, emit func(any) error) error {
		if err := in.roomFor("a rebuild"); err != nil {
			return err
		}
		if _, err := migrate(ctx, in); err != nil {
			return err
		}
		store, err := in.History(ctx)
		if err != nil {
			return err
		}
		for _, topic := range processors.SinkTopics {
			records, err := (&processors.Refill{Topic: topic, Log: in.Stream, History: store, Logger: in.Log}).Run(ctx)
			if err != nil {
				return err
			}
			if err := emit(rebuildLine{Topic: topic, Records: records}); err != nil {
				return err
			}
		}
		if err := in.expire(ctx, store); err != nil {
			return err
		}
		in.lost.set("")
		broker := in.embeddedBroker()
		if broker == nil {
			return nil
		}
		// Before they are forgotten: where nothing is fed, nobody else has told them.
		if err := in.writeGaps(ctx, in.damageGaps()); err != nil {
			return err
		}
		for _, d := range broker.Damages() {
			if err := emit(rebuildLine{Lost: d.String()}); err != nil {
				return err
			}
		}
		return broker.Settle()
	}}
}

func (a *App) rebuildCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rebuild",
		Short: "Write the rows of all views again from what the log has, after files were damaged",
		Long: `Write the rows of all views again from what the log has, and settle the damages of the log that /readyz names.

Rows that are there stay as they are. What the log itself has lost cannot be mended: it is listed, and is a row of v_gaps
with venue log and reason damage. Views that were made before keep their rows; ` + "`marketlog replay --verify`" + ` compares.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			inJSON, err := asJSON(cmd)
			if err != nil {
				return err
			}
			cfg, _, err := a.load(cmd)
			if err != nil {
				return err
			}
			return a.call(cmd.Context(), cfg, Verb{Name: "rebuild", Long: true}, jobStart, struct{}{}, func(raw json.RawMessage) error {
				if inJSON {
					return a.printJSON(raw)
				}
				var line rebuildLine
				if err := json.Unmarshal(raw, &line); err != nil {
					return fmt.Errorf("reading a line of the rebuild: %w", err)
				}
				if line.Lost != "" {
					_, err = fmt.Fprintln(a.Stdout, "lost for good:", line.Lost)
				} else {
					_, err = fmt.Fprintf(a.Stdout, "%s: %d records\n", line.Topic, line.Records)
				}
				return err
			})
		},
	}
	addInstanceFlags(cmd.Flags())
	addOutputFlag(cmd.Flags())
	return cmd
}

func (in *Instance) embeddedBroker() *embedded.Broker {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.broker
}

// logWaiting says why the embedded log is not as it should be; empty: it is.
func (in *Instance) logWaiting() string {
	broker := in.embeddedBroker()
	if broker == nil {
		return ""
	}
	if err := broker.Held(); err != nil {
		return "the log stands still until it can be written: " + err.Error()
	}
	damages := broker.Damages()
	if len(damages) == 0 {
		return ""
	}
	return fmt.Sprintf("the log is damaged in %d places, the first: %s. `marketlog rebuild` writes the views again from what the log has and settles this; the offsets themselves cannot be mended", len(damages), damages[0])
}

// damagesRole tells the log of its own damages, whether anything is fed to it or not.
func damagesRole(in *Instance) Role {
	return Role{Name: "damages", Run: func(ctx context.Context) error {
		if err := in.writeGaps(ctx, in.damageGaps()); err != nil {
			return err
		}
		<-ctx.Done()
		return nil
	}}
}

// damageGaps are the gaps of the damages of the log that are not settled.
func (in *Instance) damageGaps() (gaps []*eventsv1.Gap) {
	broker := in.embeddedBroker()
	if broker == nil {
		return nil
	}
	for _, d := range broker.Damages() {
		gap := &eventsv1.Gap{Venue: venueLog, Symbol: fmt.Sprintf("%s/%d", d.Topic, d.Partition), Reason: reasonDamage, FromTime: unixNano(d.After), ToTime: unixNano(d.Before)}
		if gap.ToTime == 0 {
			gap.ToTime = max(gap.FromTime, in.Began.UnixNano())
		}
		if gap.FromTime == 0 {
			gap.FromTime = gap.ToTime
		}
		if !d.Open {
			gap.Missed = uint64(d.Next - d.From)
		}
		gaps = append(gaps, gap)
	}
	return gaps
}

// writeGaps writes gaps that no producer of ticks knows of, and returns when they are kept. Written again, one is the same
// row.
func (in *Instance) writeGaps(ctx context.Context, gaps []*eventsv1.Gap) error {
	if len(gaps) == 0 {
		return nil
	}
	topic, err := schemas.TopicNamed(schemas.TopicTicksRaw)
	if err != nil {
		return err
	}
	producer, err := in.Stream.NewProducer()
	if err != nil {
		return fmt.Errorf("connecting to the log: %w", err)
	}
	defer producer.Close()
	records := make([]*kgo.Record, len(gaps))
	for i, gap := range gaps {
		raw := &eventsv1.RawRecord{Producer: venueLog, Epoch: in.Began.UnixNano(), Body: &eventsv1.RawRecord_Gap{Gap: gap}}
		value, err := raw.MarshalVT()
		if err != nil {
			return fmt.Errorf("encoding a gap of %s: %w", gap.Symbol, err)
		}
		key := gap.Venue + "|"
		records[i] = &kgo.Record{Topic: topic.Name, Partition: stream.PartitionFor(key, topic.Partitions), Key: []byte(key), Value: value, Timestamp: in.Clock.Now()}
	}
	if err := producer.ProduceSync(ctx, records...).FirstErr(); err != nil {
		return fmt.Errorf("writing %d gaps: %w", len(gaps), err)
	}
	return nil
}

func unixNano(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}
