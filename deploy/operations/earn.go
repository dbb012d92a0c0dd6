package operations

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/marketlog/marketlog/deploy/admin"
	"github.com/marketlog/marketlog/deploy/instance"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
	"github.com/marketlog/marketlog/stream/history/read"
)

// CorrectInput is what the correction of a day's fixings takes.
type CorrectInput struct {
	Date    string   `json:"date"`
	Without []string `json:"without"`
	Reason  string   `json:"reason"`
}

// CorrectionLine is a correction as the command shows it.
type CorrectionLine struct {
	Fixing     string   `json:"fixing"`
	Supersedes string   `json:"supersedes"`
	Median     float64  `json:"median"`
	Was        float64  `json:"was"`
	Weighted   *float64 `json:"tvlWeighted,omitempty"`
	Providers  uint32   `json:"providers"`
	Reason     string   `json:"reason"`
}

// earnVerb corrects the fixings of a day.
func earnVerb(in *instance.Instance) admin.Command {
	return admin.Command{Name: "earn.correct", Run: func(ctx context.Context, raw json.RawMessage, emit func(any) error) error {
		var input CorrectInput
		if err := json.Unmarshal(raw, &input); err != nil {
			return fmt.Errorf("reading the input: %w", err)
		}
		return correctEarn(ctx, in, input, emit)
	}}
}

// correctEarn writes a correction of each fixing of a day that a provider was in. The fixings stay.
func correctEarn(ctx context.Context, in *instance.Instance, input CorrectInput, emit func(any) error) error {
	date, err := time.Parse(time.DateOnly, input.Date)
	if err != nil {
		return fmt.Errorf("DATE %q is not a date such as 2026-01-31", input.Date)
	}
	reason := strings.TrimSpace(input.Reason)
	if reason == "" || len(reason) > maxOverrideReason {
		return fmt.Errorf("--reason must have 1 to %d bytes: it is published with the correction", maxOverrideReason)
	}
	store, err := in.History(ctx)
	if err != nil {
		return err
	}
	all, err := read.From(store).EarnFixingsOf(ctx, date)
	if err != nil {
		return err
	}
	newest := map[string]*eventsv1.EarnFixing{} // they come by revision
	for _, f := range all {
		newest[f.Segment] = f
	}
	now := in.Clock.Now()
	var records []*kgo.Record
	var lines []CorrectionLine
	for _, segment := range schemas.EarnSegments {
		f := newest[segment]
		if f == nil {
			continue
		}
		c := schemas.CorrectEarnFixing(f, input.Without, reason, now.UnixNano())
		if c == nil {
			continue
		}
		value, err := (&eventsv1.EarnRecord{Body: &eventsv1.EarnRecord_Fixing{Fixing: c}}).MarshalVT()
		if err != nil {
			return fmt.Errorf("encoding a correction: %w", err)
		}
		records = append(records, &kgo.Record{Topic: schemas.TopicEarn, Key: []byte(instance.OperatorKey), Value: value, Timestamp: now})
		lines = append(lines, CorrectionLine{schemas.EarnFixingID(c), c.Supersedes, c.Median, f.Median, c.TvlWeighted, c.ProviderCount, reason})
	}
	if len(records) == 0 {
		return fmt.Errorf("no fixing of %s includes %s and other providers; `marketlog sql \"SELECT * FROM v_earn_benchmark WHERE date = '%[1]s'\"` shows them", input.Date, strings.Join(input.Without, ", "))
	}
	producer, err := in.Stream.NewProducer()
	if err != nil {
		return fmt.Errorf("connecting to the log: %w", err)
	}
	defer producer.Close()
	if err := producer.ProduceSync(ctx, records...).FirstErr(); err != nil {
		return fmt.Errorf("writing the corrections of %s: %w", input.Date, err)
	}
	in.Log.Info("earn benchmark corrected", "date", input.Date, "without", input.Without, "reason", reason)
	for _, line := range lines {
		if err := emit(line); err != nil {
			return err
		}
	}
	return awaitFixings(ctx, in, date, len(all)+len(records))
}

// correctionPatience is how long a correction may take to its table.
const correctionPatience = time.Minute

// awaitFixings waits until a day has as many fixings as that: another correction counts on from what the table holds.
func awaitFixings(ctx context.Context, in *instance.Instance, date time.Time, n int) error {
	store, err := in.History(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, correctionPatience)
	defer cancel()
	for {
		all, err := read.From(store).EarnFixingsOf(ctx, date)
		if err != nil {
			return err
		}
		if len(all) >= n {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.New("the corrections are in the log, but not in the tables yet: are the processors running? Correct nothing more of that day before they are")
		case <-time.After(200 * time.Millisecond):
		}
	}
}
