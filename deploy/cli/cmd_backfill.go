package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/marketlog/marketlog/deploy/admin"
	"github.com/marketlog/marketlog/deploy/config"
	"github.com/marketlog/marketlog/deploy/operations"
	"github.com/marketlog/marketlog/processors"
	"github.com/marketlog/marketlog/producers/backfill"
)

func (a *App) backfillCommand() *cobra.Command {
	var input operations.BackfillInput
	var from, to string
	var dryRun, attach, cancel bool
	cmd := &cobra.Command{
		Use:   "backfill --source NAME",
		Short: "Read into the log what a venue or a polled source tells of the past",
		Long: `Read into the log what a venue or a polled source tells of the past. Of a venue these are its own candles: minutes
of the last 30 days, hours of the last year, days as far back as asked for; none twice, and closed ones only. Of a source
they are rates, currencies or an index, in its own intervals; docs/sources.md says which sources have a past and how far.

The work runs inside the instance: interrupting this command leaves it running. What was killed goes on where it stood
when the same command is given again.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			action, v := admin.Start, admin.Command{Name: "backfill", Long: true}
			switch {
			case attach:
				action = admin.Attach
			case cancel:
				action = admin.Cancel
			default:
				if err := input.Parse(from, to); err != nil {
					return err
				}
				if input.Source == "" && !input.Gaps {
					return errors.New("--source is missing: name a venue or a polled source, or fill all gaps with --gaps")
				}
				if dryRun {
					v = admin.Command{Name: "backfill.plan"}
				}
			}
			return a.backfill(cmd, v, action, input)
		},
	}
	flags := cmd.Flags()
	addBackfillFlags(cmd, &input, &from, &to)
	flags.BoolVar(&input.Gaps, "gaps", false, "fill what is missing of what was back-filled before; without --source of every venue and source")
	flags.BoolVar(&dryRun, "dry-run", false, "print what would be read, in how many calls, and how long it takes")
	flags.BoolVar(&attach, "attach", false, "show the back-fill that is running")
	flags.BoolVar(&cancel, "cancel", false, "end the back-fill that is running")
	cmd.MarkFlagsMutuallyExclusive("attach", "cancel", "dry-run")
	return cmd
}

func (a *App) gapsCommand() *cobra.Command {
	input := operations.BackfillInput{Gaps: true}
	var from, to string
	cmd := &cobra.Command{
		Use:   "gaps",
		Short: "List what of the venues' and sources' past is missing in the log and can be read",
		Long: `List what of the past is missing in the log: of the markets of venues, and of the pools and currencies of polled
sources, that were back-filled before, or that are named. What a venue or source never had, or no longer has, cannot be
read and is counted only; --unavailable lists it.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := input.Parse(from, to); err != nil {
				return err
			}
			return a.backfill(cmd, admin.Command{Name: "gaps"}, admin.Start, input)
		},
	}
	addBackfillFlags(cmd, &input, &from, &to)
	cmd.Flags().BoolVar(&input.Unavailable, "unavailable", false, "list each range that the venue or source does not have")
	return cmd
}

func addBackfillFlags(cmd *cobra.Command, input *operations.BackfillInput, from, to *string) {
	flags := cmd.Flags()
	flags.StringVar(&input.Source, "source", "", "`NAME` of a venue or of a polled source, as binance or defillama-yields")
	flags.StringSliceVar(&input.Symbols, "symbols", nil, "symbols of markets, as the venue spells them, or of coins; of a source ids or symbols of its pools or currencies; default: the best known")
	flags.StringVar(from, "from", "", "candles that start, values that were told at this `TIME` (RFC 3339) or later; default: five years ago")
	flags.StringVar(to, "to", "", "candles that start, values that were told before this `TIME` (RFC 3339); default: now")
	config.AddInstanceFlags(flags)
	addOutputFlag(flags)
}

func (a *App) backfill(cmd *cobra.Command, v admin.Command, action admin.Action, input operations.BackfillInput) error {
	inJSON, err := asJSON(cmd)
	if err != nil {
		return err
	}
	cfg, _, err := a.load(cmd)
	if err != nil {
		return err
	}
	p := &backfillPrinter{replayPrinter{App: a, inJSON: inJSON}}
	err = a.call(cmd.Context(), cfg, v, action, input, p.line)
	p.end()
	if action == admin.Cancel && err != nil && err.Error() == operations.ErrBackfillEnded.Error() { // an error's text is all that comes through the socket
		_, err = fmt.Fprintln(a.Stderr, operations.ErrBackfillEnded)
	}
	return err
}

// backfillPrinter shows what the verbs of back-filling say, with progress as a replay's.
type backfillPrinter struct{ replayPrinter }

func (p *backfillPrinter) line(raw json.RawMessage) error {
	var line struct {
		processors.ReplayProgress
		Status string `json:"status"`
		Plan   string `json:"plan"`
		Absent string `json:"absentFrom"`
	}
	if err := json.Unmarshal(raw, &line); err != nil {
		return fmt.Errorf("reading a line of the back-fill: %w", err)
	}
	if line.Step != "" {
		return p.progress(raw, line.ReplayProgress)
	}
	p.end()
	if p.inJSON {
		return p.printJSON(raw)
	}
	switch {
	case line.Status != "":
		return printAs(p, raw, func(r operations.RangeLine) string {
			what := fmt.Sprintf("%s %s", r.Source, r.Symbol)
			holds := fmt.Sprintf("%d candles", r.Candles)
			if r.Values > 0 {
				holds = fmt.Sprintf("%d values", r.Values)
			}
			if r.Values > 0 && r.Base != "" && r.Base != r.Symbol {
				what += " " + r.Base
			}
			text := fmt.Sprintf("%s %s: %s to %s, %s", what, r.Interval, r.From.Format(time.RFC3339), r.To.Format(time.RFC3339), holds)
			if r.Reason != "" {
				return text + " unavailable: " + r.Reason
			}
			return fmt.Sprintf("%s missing, %d calls", text, r.Calls)
		})
	case line.Absent != "":
		return printAs(p, raw, func(l operations.AbsentLine) string {
			what, count := "candles", l.Candles
			if l.Values > 0 {
				what, count = "values", l.Values
			}
			return fmt.Sprintf("%s: does not have %d ranges, %d %s; --unavailable lists them", l.Absent, l.Ranges, count, what)
		})
	case line.Plan != "":
		return printAs(p, raw, func(l operations.PlanLine) string {
			holds := fmt.Sprintf("%d markets, %d candles", l.Markets, l.Candles)
			if l.Series > 0 {
				holds = fmt.Sprintf("%d series, %d values", l.Series, l.Values)
			}
			return fmt.Sprintf("%s: %s, %d calls, %s at %.3g a second", l.Plan, holds, l.Calls,
				time.Duration(l.Seconds*float64(time.Second)).Round(time.Second), l.Pace)
		})
	}
	return printAs(p, raw, func(r backfill.Result) string {
		if r.Series > 0 {
			return fmt.Sprintf("%s: %d calls, %d values of %d series written, %d rows refused, %d calls failed, %.1f s", r.Source, r.Calls, r.Values, r.Series, r.Refused, r.Failed, r.Seconds)
		}
		return fmt.Sprintf("%s: %d calls, %d candles written, %d were there, %d refused, %d calls failed, %.1f s", r.Source, r.Calls, r.Candles, r.Known, r.Refused, r.Failed, r.Seconds)
	})
}

// printAs prints a line of JSON as text.
func printAs[T any](p *backfillPrinter, raw json.RawMessage, text func(T) string) error {
	var line T
	if err := json.Unmarshal(raw, &line); err != nil {
		return fmt.Errorf("reading a line of the back-fill: %w", err)
	}
	_, err := fmt.Fprintln(p.Stdout, text(line))
	return err
}
