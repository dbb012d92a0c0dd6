package cli

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/marketlog/marketlog/deploy/admin"
	"github.com/marketlog/marketlog/deploy/config"
	"github.com/marketlog/marketlog/deploy/operations"
	"github.com/marketlog/marketlog/schemas"
)

func (a *App) deadCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "dead", Short: "Look at messages that could not become ticks, and read them again"}
	var source, reason string
	var count int
	list := &cobra.Command{
		Use:   "list",
		Short: "List them, the newest first",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.ask(cmd, `SELECT topic, log_offset, ingest_time, source, reason, detail, retried_at FROM v_dead_letters
				WHERE ({source:String} = '' OR toString(source) = {source:String}) AND ({reason:String} = '' OR toString(reason) = {reason:String})
				ORDER BY ingest_time DESC, log_offset DESC LIMIT {count:UInt32}`,
				"source", source, "reason", reason, "count", strconv.Itoa(count))
		},
	}
	list.Flags().StringVar(&source, "source", "", "only of this venue or source")
	list.Flags().StringVar(&reason, "reason", "", "only for this reason")
	list.Flags().IntVarP(&count, "count", "n", 20, "at most `N`")
	show := &cobra.Command{
		Use:   "show TOPIC OFFSET",
		Short: "Show one, with the message itself",
		Args:  cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if _, err := strconv.ParseInt(args[1], 10, 64); err != nil {
				return fmt.Errorf("OFFSET %q is no number; `marketlog dead list` shows them", args[1])
			}
			return a.ask(cmd, "SELECT * FROM v_dead_letters WHERE topic = {topic:String} AND log_offset = {offset:Int64} FORMAT Vertical",
				"topic", args[0], "offset", args[1])
		},
	}
	for _, c := range []*cobra.Command{list, show, a.deadRetryCommand()} {
		config.AddInstanceFlags(c.Flags())
		addOutputFlag(c.Flags())
		cmd.AddCommand(c)
	}
	return cmd
}

func (a *App) deadRetryCommand() *cobra.Command {
	var input operations.RetryInput
	var since string
	cmd := &cobra.Command{
		Use:   "retry",
		Short: "Read them again, with the decoders and rules of this version",
		Long: `Read dead letters again, with the decoders and rules of this version. What can be read now becomes ticks, each event
once and under the id that it would have had; trades among them are late, and change no closed candle. A letter of which
everything could be read is marked, and not read again.

Letters of the last minutes are left to a later time. Interrupted or killed, it is begun again with the same command.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if input.Since, err = operations.ParseTime("since", since); err != nil {
				return err
			}
			if input.Reason != "" && !slices.Contains(schemas.Reasons, schemas.Reason(input.Reason)) {
				return fmt.Errorf("--reason %q is unknown; use one of %v", input.Reason, schemas.Reasons)
			}
			inJSON, err := asJSON(cmd)
			if err != nil {
				return err
			}
			cfg, _, err := a.load(cmd)
			if err != nil {
				return err
			}
			return a.call(cmd.Context(), cfg, admin.Command{Name: "dead.retry"}, admin.Start, input, func(raw json.RawMessage) error {
				if inJSON {
					return a.printJSON(raw)
				}
				return a.printRetry(raw, input.DryRun)
			})
		},
	}
	cmd.Flags().StringVar(&input.Source, "source", "", "only of this venue")
	cmd.Flags().StringVar(&input.Reason, "reason", "", "only for this reason")
	cmd.Flags().StringVar(&since, "since", "", "only those that were read at this `TIME` (RFC 3339) or later")
	cmd.Flags().BoolVar(&input.DryRun, "dry-run", false, "say what would become of each, and write nothing")
	return cmd
}

func (a *App) printRetry(raw json.RawMessage, dryRun bool) error {
	var line struct {
		operations.RetryLine
		Letters  *int           `json:"letters"`
		Outcomes map[string]int `json:"outcomes"`
	}
	if err := json.Unmarshal(raw, &line); err != nil {
		return fmt.Errorf("reading a line of the retry: %w", err)
	}
	if line.Letters != nil {
		text := fmt.Sprintf("%d letters, %d new ticks", *line.Letters, line.Ticks)
		for _, outcome := range slices.Sorted(maps.Keys(line.Outcomes)) {
			text += fmt.Sprintf(", %d %s", line.Outcomes[outcome], outcome)
		}
		if dryRun {
			text += " (nothing is written)"
		}
		_, err := fmt.Fprintln(a.Stdout, text)
		return err
	}
	text := fmt.Sprintf("%d %s %s %s: %s, %d new ticks", line.Offset, line.IngestTime.Format(time.RFC3339), line.Source, line.Reason, line.Outcome, line.Ticks)
	if line.Detail != "" {
		text += ": " + line.Detail
	}
	_, err := fmt.Fprintln(a.Stdout, text)
	return err
}
