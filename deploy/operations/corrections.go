package operations

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/marketlog/marketlog/deploy/admin"
	"github.com/marketlog/marketlog/deploy/instance"
	"github.com/marketlog/marketlog/processors"
	"github.com/marketlog/marketlog/producers/exchanges"
	"github.com/marketlog/marketlog/schemas"
	eventsv1 "github.com/marketlog/marketlog/schemas/events/v1"
)

// Bounds of a correction.
const (
	maxCorrectionName     = 64   // bytes of a symbol and of an author
	maxCorrectionEvidence = 2048 // bytes
	// maxExclusions is how many exclusions of a venue may hold: each of its ticks is compared with all of them.
	maxExclusions = 200
)

// CorrectionInput is what the commands of corrections take; times are empty where they are not given.
type CorrectionInput struct {
	Venue     string    `json:"venue,omitempty"`
	Symbol    string    `json:"symbol,omitempty"`
	From      time.Time `json:"from,omitzero"`
	To        time.Time `json:"to,omitzero"`
	Withdraws string    `json:"withdraws,omitempty"`
	Author    string    `json:"author,omitempty"`
	Reason    string    `json:"reason,omitempty"`
	Evidence  string    `json:"evidence,omitempty"`
}

// CorrectionEntry is a correction as commands show it.
type CorrectionEntry struct {
	ID          string     `json:"id"`
	Kind        string     `json:"kind"`
	Venue       string     `json:"venue,omitempty"`
	Symbol      string     `json:"symbol,omitempty"`
	From        *time.Time `json:"from,omitempty"`
	To          *time.Time `json:"to,omitempty"`
	Withdraws   string     `json:"withdraws,omitempty"`
	WithdrawnBy string     `json:"withdrawnBy,omitempty"`
	Author      string     `json:"author"`
	Reason      string     `json:"reason"`
	Evidence    string     `json:"evidence,omitempty"`
	Time        time.Time  `json:"time"`
}

func describeCorrection(c schemas.Correction) CorrectionEntry {
	at := func(ns int64) *time.Time {
		if ns == 0 {
			return nil
		}
		t := time.Unix(0, ns).UTC()
		return &t
	}
	return CorrectionEntry{
		ID: c.Id, Kind: c.Kind, Venue: c.Venue, Symbol: c.Symbol, From: at(c.From), To: at(c.To), Withdraws: c.Withdraws, WithdrawnBy: c.Withdrawn.GetId(),
		Author: c.Author, Reason: c.Reason, Evidence: c.Evidence, Time: time.Unix(0, c.Time).UTC(),
	}
}

// correctionVerbs write and list corrections of what was received.
func correctionVerbs(in *instance.Instance) []admin.Command {
	verb := func(name string, run func(ctx context.Context, input CorrectionInput, known *schemas.Corrections, emit func(any) error) error) admin.Command {
		return admin.Command{Name: name, Run: func(ctx context.Context, raw json.RawMessage, emit func(any) error) error {
			var input CorrectionInput
			if err := json.Unmarshal(raw, &input); err != nil {
				return fmt.Errorf("reading the input: %w", err)
			}
			known, _, err := processors.ReadCorrections(ctx, in.Stream, math.MaxInt64)
			if err != nil {
				return err
			}
			return run(ctx, input, known, emit)
		}}
	}
	write := func(ctx context.Context, rec *eventsv1.CorrectionRecord, emit func(any) error) error {
		if err := writeCorrection(ctx, in, rec); err != nil {
			return err
		}
		return emit(describeCorrection(schemas.Correction{CorrectionRecord: rec}))
	}
	return []admin.Command{
		verb("corrections.exclude", func(ctx context.Context, input CorrectionInput, known *schemas.Corrections, emit func(any) error) error {
			rec, err := readExclusion(input, known, in.Clock.Now())
			if err != nil {
				return err
			}
			return write(ctx, rec, emit)
		}),
		verb("corrections.withdraw", func(ctx context.Context, input CorrectionInput, known *schemas.Corrections, emit func(any) error) error {
			rec, err := readWithdrawal(input, known, in.Clock.Now())
			if err != nil {
				return err
			}
			return write(ctx, rec, emit)
		}),
		verb("corrections.list", func(_ context.Context, _ CorrectionInput, known *schemas.Corrections, emit func(any) error) error {
			for _, c := range known.All() {
				if err := emit(describeCorrection(c)); err != nil {
					return err
				}
			}
			return nil
		}),
	}
}

// newCorrection begins a record that is written at an instant, and checks what all kinds have.
func newCorrection(kind string, input CorrectionInput, known *schemas.Corrections, now time.Time) (*eventsv1.CorrectionRecord, error) {
	now = now.UTC()
	for _, c := range known.All() { // they come by time
		if c.Id == correctionID(now) {
			now = now.Add(time.Millisecond)
		}
	}
	rec := &eventsv1.CorrectionRecord{
		Id: correctionID(now), Time: now.UnixNano(), Kind: kind,
		Author: strings.TrimSpace(input.Author), Reason: strings.TrimSpace(input.Reason), Evidence: strings.TrimSpace(input.Evidence),
	}
	var faults []error
	if rec.Reason == "" || len(rec.Reason) > maxOverrideReason {
		faults = append(faults, fmt.Errorf("--reason has %d bytes and must have 1 to %d: it is published with the correction", len(rec.Reason), maxOverrideReason))
	}
	if rec.Author == "" || len(rec.Author) > maxCorrectionName {
		faults = append(faults, fmt.Errorf("--author %.70q must have 1 to %d bytes: state who is answerable", rec.Author, maxCorrectionName))
	}
	if len(rec.Evidence) > maxCorrectionEvidence {
		faults = append(faults, fmt.Errorf("--evidence has %d bytes and may have %d: give the address of a longer text", len(rec.Evidence), maxCorrectionEvidence))
	}
	return rec, errors.Join(faults...)
}

// correctionID names a correction by when it was written; no two are of one millisecond.
func correctionID(at time.Time) string { return at.Format("20060102T150405.000Z") }

func readExclusion(input CorrectionInput, known *schemas.Corrections, now time.Time) (*eventsv1.CorrectionRecord, error) {
	rec, err := newCorrection(schemas.CorrectionExclude, input, known, now)
	rec.Venue, rec.Symbol = schemas.VenueSlug(input.Venue), strings.ToUpper(strings.TrimSpace(input.Symbol))
	rec.From = rec.Time
	if !input.From.IsZero() {
		rec.From = input.From.UnixNano()
	}
	if !input.To.IsZero() {
		rec.To = input.To.UnixNano()
	}
	faults := []error{err}
	if _, ok := exchanges.Find(rec.Venue); !ok {
		var names []string
		for _, v := range exchanges.List() {
			names = append(names, v.Slug)
		}
		faults = append(faults, fmt.Errorf("VENUE %.70q is not a venue: use one of %s", input.Venue, strings.Join(names, ", ")))
	}
	if len(rec.Symbol) > maxCorrectionName || strings.ContainsFunc(rec.Symbol, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		faults = append(faults, fmt.Errorf("SYMBOL %.70q must have at most %d bytes: the market as the venue spells it, as in v_ticks", rec.Symbol, maxCorrectionName))
	}
	if rec.From <= 0 {
		faults = append(faults, fmt.Errorf("--from %s must be after 1970", input.From.Format(time.RFC3339)))
	}
	if rec.To != 0 && rec.To <= rec.From {
		faults = append(faults, fmt.Errorf("--to %s must be after --from %s", input.To.Format(time.RFC3339), time.Unix(0, rec.From).UTC().Format(time.RFC3339)))
	}
	hold := 0
	for _, c := range known.All() {
		if c.Kind == schemas.CorrectionExclude && c.Venue == rec.Venue && c.Withdrawn == nil {
			hold++
		}
	}
	if hold >= maxExclusions {
		faults = append(faults, fmt.Errorf("%s has %d exclusions, and no venue may have more: withdraw those that longer ones cover", rec.Venue, hold))
	}
	return rec, errors.Join(faults...)
}

func readWithdrawal(input CorrectionInput, known *schemas.Corrections, now time.Time) (*eventsv1.CorrectionRecord, error) {
	rec, err := newCorrection(schemas.CorrectionWithdraw, input, known, now)
	rec.Withdraws = strings.TrimSpace(input.Withdraws)
	faults := []error{err}
	fault := fmt.Errorf("ID %.70q is not an exclusion: marketlog corrections list shows them", rec.Withdraws)
	for _, c := range known.All() {
		switch {
		case c.Id != rec.Withdraws || c.Kind != schemas.CorrectionExclude:
		case c.Withdrawn != nil:
			fault = fmt.Errorf("ID %q is withdrawn already, by %s", rec.Withdraws, c.Withdrawn.Id)
		default:
			fault = nil
		}
	}
	return rec, errors.Join(append(faults, fault)...)
}

// writeCorrection writes a correction into the log, where folds apply it from its time on.
func writeCorrection(ctx context.Context, in *instance.Instance, correction *eventsv1.CorrectionRecord) error {
	producer, err := in.Stream.NewProducer()
	if err != nil {
		return fmt.Errorf("connecting to the log: %w", err)
	}
	defer producer.Close()
	value, err := correction.MarshalVT()
	if err != nil {
		return fmt.Errorf("encoding a correction: %w", err)
	}
	rec := &kgo.Record{Topic: schemas.TopicCorrections, Value: value, Timestamp: time.Unix(0, correction.Time)}
	if err := producer.ProduceSync(ctx, rec).FirstErr(); err != nil {
		return fmt.Errorf("writing the correction: %w", err)
	}
	in.Log.Info("correction written", "id", correction.Id, "kind", correction.Kind, "venue", correction.Venue, "symbol", correction.Symbol,
		"withdraws", correction.Withdraws, "author", correction.Author, "reason", correction.Reason)
	return nil
}
