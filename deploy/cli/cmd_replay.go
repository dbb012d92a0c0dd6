package cli

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"

	"github.com/marketlog/marketlog/deploy/admin"
	"github.com/marketlog/marketlog/deploy/cli/command"
	"github.com/marketlog/marketlog/deploy/config"
	"github.com/marketlog/marketlog/deploy/operations"
	"github.com/marketlog/marketlog/deploy/roles"
	"github.com/marketlog/marketlog/processors"
	"github.com/marketlog/marketlog/schemas"
	"github.com/marketlog/marketlog/stream/history/shadow"
)

func replayCommand(rt *command.Runtime) *cobra.Command {
	var input operations.ReplayInput
	var from, to string
	var attach, cancel bool
	cmd := &cobra.Command{
		Use:   "replay --view " + strings.Join(schemas.Views(), "|"),
		Short: "Rebuild a view from the log, compare it with the live one, and swap it in",
		Long: `Rebuild a view from the log into shadow tables, compare these with the live ones, and swap them in while the live
processing continues. --verify compares only. The exit code is 1 if rows differ.

The replay runs inside the instance: interrupting this command leaves it running. After a crash, the same command resumes
it.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if input.From, err = operations.ParseTime("from", from); err != nil {
				return err
			}
			if input.To, err = operations.ParseTime("to", to); err != nil {
				return err
			}
			action := admin.Start
			switch {
			case attach:
				action = admin.Attach
			case cancel:
				action = admin.Cancel
			default:
				if err := (&processors.Replay{View: input.View, From: input.From, To: input.To, Verify: input.Verify, Corrected: input.Corrected}).Validate(); err != nil {
					return err
				}
			}
			return replay(rt, cmd, action, input)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&input.View, "view", "", viewText())
	flags.StringVar(&from, "from", "", "rebuild rows from this log `TIME` on (RFC 3339)")
	flags.StringVar(&to, "to", "", "rebuild rows before this log `TIME` (RFC 3339)")
	flags.BoolVar(&input.Verify, "verify", false, "compare only")
	flags.BoolVar(&input.Corrected, "corrected", false, "apply corrections over their validity, also where they were written later; for views "+schemas.ViewPrices+" and "+schemas.ViewCandles)
	flags.BoolVar(&attach, "attach", false, "show the progress of the running replay")
	flags.BoolVar(&cancel, "cancel", false, "cancel the running replay, and remove the shadow tables of an interrupted one")
	cmd.MarkFlagsMutuallyExclusive("attach", "cancel", "verify")
	config.AddInstanceFlags(flags)
	command.AddDocumentsFlag(flags)
	return cmd
}

// viewText is what --view takes.
func viewText() string {
	folded := schemas.FoldedViews()
	return fmt.Sprintf("%s, %s (these %d), %s or %s, which is only compared",
		strings.Join(folded, ", "), schemas.ViewAll, len(folded), schemas.ViewTicks, schemas.ViewReference)
}

func replay(rt *command.Runtime, cmd *cobra.Command, action admin.Action, input operations.ReplayInput) error {
	out, err := rt.Output(cmd)
	if err != nil {
		return err
	}
	cfg, err := rt.LoadInstance(cmd)
	if err != nil {
		return err
	}
	p := &replayPrinter{Runtime: rt, out: out}
	v := admin.Command{Name: "replay", Long: true}
	if action == admin.Cancel {
		// First it is stopped, wherever it runs; then what it left is removed.
		if info, ok, err := command.RunningInstance(cmd.Context(), cfg.DataDir); err != nil {
			return err
		} else if ok {
			_ = admin.CallRunning(cmd.Context(), info.Admin, v, admin.Cancel, nil, func(json.RawMessage) error { return nil })
		}
		action, input = admin.Start, operations.ReplayInput{Abort: true}
	}
	err = rt.Call(cmd.Context(), cfg, v, action, input, p.line)
	p.end()
	expected := p.result != nil && (p.result.View == schemas.ViewTicks || p.result.Corrected) // to change rows is what it is for
	if err == nil && p.result != nil && p.result.Differing > 0 && (!expected || input.Verify) {
		return command.ErrReported
	}
	return err
}

// replayPrinter shows a replay: on a terminal with a bar for each step, else with a line every five seconds.
type replayPrinter struct {
	*command.Runtime
	out    *command.Output
	result *processors.ReplayResult
	bar    *progressbar.ProgressBar
	step   string
	shown  time.Time
}

const progressEvery = 5 * time.Second

func (p *replayPrinter) line(raw json.RawMessage) error {
	var result struct {
		processors.ReplayResult
		Compared *int64 `json:"compared"`
	}
	if err := json.Unmarshal(raw, &result); err != nil {
		return fmt.Errorf("reading a line of the replay: %w", err)
	}
	var line operations.ReplayLine
	if err := json.Unmarshal(raw, &line); err != nil {
		return fmt.Errorf("reading a line of the replay: %w", err)
	}
	if line.Step != "" {
		return p.progress(raw, line.ReplayProgress)
	}
	p.end()
	if result.Compared != nil {
		result.ReplayResult.Compared = *result.Compared
		p.result = &result.ReplayResult
	}
	if p.out.Objects() {
		return p.out.Object(raw)
	}
	var err error
	switch {
	case result.Compared != nil:
		_, err = fmt.Fprintf(p.Stdout, "view %s: %d rows compared, %d differ, %d outside, %.1f s\n",
			result.View, *result.Compared, result.Differing, result.Outside, result.Seconds)
		if err == nil && result.Restated > 0 {
			_, err = fmt.Fprintf(p.Stdout, "%d rows restated; marketlog restatements lists them\n", result.Restated)
		}
	case line.Kind != "":
		_, err = fmt.Fprintln(p.Stdout, differenceText(line.Difference))
	case line.Change != "":
		_, err = fmt.Fprintf(p.Stdout, "%d ticks from %s\n", line.Ticks, line.Change)
	case line.Note != "":
		_, err = fmt.Fprintln(p.Stderr, line.Note)
	}
	return err
}

func differenceText(d shadow.Difference) string {
	var key []string
	for _, name := range slices.Sorted(maps.Keys(d.Key)) {
		key = append(key, name+"="+d.Key[name])
	}
	text := fmt.Sprintf("%s: %s %s", d.Table, d.Kind, strings.Join(key, " "))
	if len(d.Columns) > 0 {
		text += ": " + strings.Join(d.Columns, ", ")
	}
	return text
}

func (p *replayPrinter) progress(raw json.RawMessage, at processors.ReplayProgress) error {
	if p.out.Objects() {
		return p.out.Object(raw)
	}
	if !roles.IsTerminal(p.Stderr) {
		if at.Step == p.step && time.Since(p.shown) < progressEvery {
			return nil
		}
		p.step, p.shown = at.Step, time.Now()
		_, err := fmt.Fprintf(p.Stderr, "%s: %d of %d, %.0f/s, %s left\n", at.Step, at.Done, at.Total, at.Rate,
			time.Duration(at.Left*float64(time.Second)).Round(time.Second))
		return err
	}
	if p.bar == nil || p.step != at.Step {
		p.end()
		p.step = at.Step
		p.bar = progressbar.NewOptions64(max(at.Total, 1), progressbar.OptionSetWriter(p.Stderr), progressbar.OptionSetDescription(at.Step),
			progressbar.OptionShowCount(), progressbar.OptionShowIts(), progressbar.OptionSetPredictTime(true), progressbar.OptionFullWidth())
	}
	p.bar.ChangeMax64(max(at.Total, 1))
	return p.bar.Set64(min(at.Done, max(at.Total, 1)))
}

// end leaves the bar's line.
func (p *replayPrinter) end() {
	if p.bar != nil {
		_ = p.bar.Exit()
		fmt.Fprintln(p.Stderr)
		p.bar = nil
	}
}
