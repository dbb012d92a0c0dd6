package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/marketlog/marketlog/deploy/admin"
	"github.com/marketlog/marketlog/deploy/cli/command"
	"github.com/marketlog/marketlog/deploy/config"
	"github.com/marketlog/marketlog/deploy/operations"
	"github.com/marketlog/marketlog/processors"
	"github.com/marketlog/marketlog/producers/backfill"
)

func backfillCommand(rt *command.Runtime) *cobra.Command {
	var input operations.BackfillInput
	var from, to string
	var dryRun, attach, cancel bool
	cmd := &cobra.Command{
		Use:   "backfill --source NAME",
		Short: "Read the history of a venue or a polled source into the log",
		Long: `Read the history of a venue or a polled source into the log. From a venue it reads closed candles: minutes of the last
30 days, hours of the last year, days as far back as requested, each at most once. From a source it reads rates, currencies
or an index at the source's own intervals; docs/sources.md lists which sources provide history, and how far back.

The backfill runs inside the instance: interrupting this command leaves it running. After a crash, the same command resumes
it.`,
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
			return runBackfill(rt, cmd, v, action, input)
		},
	}
	flags := cmd.Flags()
	addBackfillFlags(cmd, &input, &from, &to)
	flags.BoolVar(&input.Gaps, "gaps", false, "fill the gaps of earlier backfills; without --source, of all venues and sources")
	flags.BoolVar(&dryRun, "dry-run", false, "print what would be read, in how many calls, and how long it takes")
	flags.BoolVar(&attach, "attach", false, "show the progress of the running backfill")
	flags.BoolVar(&cancel, "cancel", false, "cancel the running backfill")
	cmd.MarkFlagsMutuallyExclusive("attach", "cancel", "dry-run")
	return cmd
}

func gapsCommand(rt *command.Runtime) *cobra.Command {
	input := operations.BackfillInput{Gaps: true}
	var from, to string
	cmd := &cobra.Command{
		Use:   "gaps",
		Short: "List the gaps in the log's history that a backfill can fill",
		Long: `List gaps in the log's history: for markets of venues, and for pools and currencies of polled sources, that were
backfilled before or are named with --symbols. Ranges that a venue or source does not have are only counted; --unavailable
lists them.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := input.Parse(from, to); err != nil {
				return err
			}
			return runBackfill(rt, cmd, admin.Command{Name: "gaps"}, admin.Start, input)
		},
	}
	addBackfillFlags(cmd, &input, &from, &to)
	cmd.Flags().BoolVar(&input.Unavailable, "unavailable", false, "list each range that the venue or source does not have")
	return cmd
}

func addBackfillFlags(cmd *cobra.Command, input *operations.BackfillInput, from, to *string) {
	flags := cmd.Flags()
	flags.StringVar(&input.Source, "source", "", "`NAME` of a venue or of a polled source, such as binance or defillama-yields")
	flags.StringSliceVar(&input.Symbols, "symbols", nil, "symbols of markets, as spelled by the venue, or of coins; for a source, ids or symbols of its pools or currencies; default: the best known")
	flags.StringVar(from, "from", "", "start of the range, inclusive, as a `TIME` (RFC 3339); default: five years ago")
	flags.StringVar(to, "to", "", "end of the range, exclusive, as a `TIME` (RFC 3339); default: now")
	config.AddInstanceFlags(flags)
	command.AddDocumentsFlag(flags)
}

func runBackfill(rt *command.Runtime, cmd *cobra.Command, v admin.Command, action admin.Action, input operations.BackfillInput) error {
	return runResumable(rt, cmd, v, action, input, func(shown replayPrinter) jobPrinter { return &backfillPrinter{shown} })
}

// jobPrinter shows the lines of a job, and ends what progress it has begun to show.
type jobPrinter interface {
	line(raw json.RawMessage) error
	end()
}

// runResumable calls work of the instance that can be taken up again. To cancel it is not a failure: it then ends with the text of
// ended, which is all of an error that comes through the socket.
func runResumable(rt *command.Runtime, cmd *cobra.Command, v admin.Command, action admin.Action, input any, printer func(replayPrinter) jobPrinter) error {
	out, err := rt.Output(cmd)
	if err != nil {
		return err
	}
	cfg, err := rt.LoadInstance(cmd)
	if err != nil {
		return err
	}
	p := printer(replayPrinter{Runtime: rt, out: out})
	err = rt.Call(cmd.Context(), cfg, v, action, input, p.line)
	p.end()
	if action == admin.Cancel && err != nil && err.Error() == v.Ended().Error() {
		_, err = fmt.Fprintln(rt.Stderr, err)
	}
	return err
}

// backfillPrinter shows the replies of the backfill commands, with progress as of a replay.
type backfillPrinter struct{ replayPrinter }

func (p *backfillPrinter) line(raw json.RawMessage) error {
	var line struct {
		processors.ReplayProgress
		Status string `json:"status"`
		Plan   string `json:"plan"`
		Absent string `json:"absentFrom"`
	}
	if err := json.Unmarshal(raw, &line); err != nil {
		return fmt.Errorf("reading a line of the backfill: %w", err)
	}
	if line.Step != "" {
		return p.progress(raw, line.ReplayProgress)
	}
	p.end()
	if p.out.Objects() {
		return p.out.Object(raw)
	}
	switch {
	case line.Status != "":
		return printLine(p.replayPrinter, raw, func(r operations.RangeLine) string {
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
		return printLine(p.replayPrinter, raw, func(l operations.AbsentLine) string {
			what, count := "candles", l.Candles
			if l.Values > 0 {
				what, count = "values", l.Values
			}
			return fmt.Sprintf("%s: does not have %d ranges, %d %s; --unavailable lists them", l.Absent, l.Ranges, count, what)
		})
	case line.Plan != "":
		return printLine(p.replayPrinter, raw, func(l operations.PlanLine) string {
			holds := fmt.Sprintf("%d markets, %d candles", l.Markets, l.Candles)
			if l.Series > 0 {
				holds = fmt.Sprintf("%d series, %d values", l.Series, l.Values)
			}
			return fmt.Sprintf("%s: %s, %d calls, %s at %.3g a second", l.Plan, holds, l.Calls,
				time.Duration(l.Seconds*float64(time.Second)).Round(time.Second), l.Pace)
		})
	}
	return printLine(p.replayPrinter, raw, func(r backfill.Result) string {
		if r.Series > 0 {
			return fmt.Sprintf("%s: %d calls, %d values of %d series written, %d rows refused, %d calls failed, %.1f s", r.Source, r.Calls, r.Values, r.Series, r.Refused, r.Failed, r.Seconds)
		}
		return fmt.Sprintf("%s: %d calls, %d candles written, %d were there, %d refused, %d calls failed, %.1f s", r.Source, r.Calls, r.Candles, r.Known, r.Refused, r.Failed, r.Seconds)
	})
}

// printLine prints a line of JSON as text.
func printLine[T any](p replayPrinter, raw json.RawMessage, text func(T) string) error {
	var line T
	if err := json.Unmarshal(raw, &line); err != nil {
		return fmt.Errorf("reading a line of the job: %w", err)
	}
	_, err := fmt.Fprintln(p.Stdout, text(line))
	return err
}
