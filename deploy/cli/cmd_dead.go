package cli

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/marketlog/marketlog/deploy/cli/command"
	"github.com/marketlog/marketlog/deploy/cli/sql"
	"github.com/marketlog/marketlog/deploy/config"
	"github.com/marketlog/marketlog/deploy/operations"
	"github.com/marketlog/marketlog/schemas"
)

func deadCommand(rt *command.Runtime) *cobra.Command {
	cmd := &cobra.Command{Use: "dead", Short: "List dead letters and decode them again"}
	var source, reason string
	var count int
	list := &cobra.Command{
		Use:   "list",
		Short: "List dead letters, newest first",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return sql.Run(rt, cmd, `SELECT topic, log_offset, ingest_time, source, reason, detail, retried_at FROM v_dead_letters
				WHERE ({source:String} = '' OR toString(source) = {source:String}) AND ({reason:String} = '' OR toString(reason) = {reason:String})
				ORDER BY ingest_time DESC, log_offset DESC LIMIT {count:UInt32}`,
				"source", source, "reason", reason, "count", strconv.Itoa(count))
		},
	}
	list.Flags().StringVar(&source, "source", "", "only from this venue or source")
	list.Flags().StringVar(&reason, "reason", "", "only for this reason")
	list.Flags().IntVarP(&count, "count", "n", 20, "at most `N`")
	show := &cobra.Command{
		Use:   "show TOPIC OFFSET",
		Short: "Show one dead letter with its message",
		Args:  cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if _, err := strconv.ParseInt(args[1], 10, 64); err != nil {
				return fmt.Errorf("OFFSET %q is not a number; `marketlog dead list` shows them", args[1])
			}
			return sql.Run(rt, cmd, "SELECT * FROM v_dead_letters WHERE topic = {topic:String} AND log_offset = {offset:Int64} FORMAT Vertical",
				"topic", args[0], "offset", args[1])
		},
	}
	for _, c := range []*cobra.Command{list, show, deadRetryCommand(rt)} {
		config.AddInstanceFlags(c.Flags())
		command.AddOutputFlag(c.Flags())
		cmd.AddCommand(c)
	}
	return cmd
}

func deadRetryCommand(rt *command.Runtime) *cobra.Command {
	var input operations.RetryInput
	var since string
	cmd := &cobra.Command{
		Use:   "retry",
		Short: "Decode dead letters again, with this version's decoders and rules",
		Long: `Decode dead letters again, with this version's decoders and rules. What can be decoded now becomes ticks, each event
once and with its original id; trades among them are late and do not change closed candles. A letter that was decoded
completely is marked, and not decoded again.

Letters of the last minutes are skipped. If the command is interrupted or killed, run it again.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if input.Since, err = operations.ParseTime("since", since); err != nil {
				return err
			}
			if input.Reason != "" && !slices.Contains(schemas.Reasons, schemas.Reason(input.Reason)) {
				return fmt.Errorf("--reason %q is unknown; use one of %v", input.Reason, schemas.Reasons)
			}
			_, err = command.Lines(rt, cmd, "dead.retry", input, func(out *command.Output, line retryLine) error {
				out.Text("%s", line.text(input.DryRun))
				return nil
			})
			return err
		},
	}
	cmd.Flags().StringVar(&input.Source, "source", "", "only from this venue")
	cmd.Flags().StringVar(&input.Reason, "reason", "", "only for this reason")
	cmd.Flags().StringVar(&since, "since", "", "only those received at this `TIME` (RFC 3339) or later")
	cmd.Flags().BoolVar(&input.DryRun, "dry-run", false, "print the result for each, and write nothing")
	return cmd
}

// retryLine is a dead letter that was decoded again, or the summary of all.
type retryLine struct {
	operations.RetryLine
	Letters  *int           `json:"letters"`
	Outcomes map[string]int `json:"outcomes"`
}

func (line retryLine) text(dryRun bool) string {
	if line.Letters != nil {
		text := fmt.Sprintf("%d letters, %d new ticks", *line.Letters, line.Ticks)
		for _, outcome := range slices.Sorted(maps.Keys(line.Outcomes)) {
			text += fmt.Sprintf(", %d %s", line.Outcomes[outcome], outcome)
		}
		if dryRun {
			text += " (nothing is written)"
		}
		return text
	}
	text := fmt.Sprintf("%d %s %s %s: %s, %d new ticks", line.Offset, line.IngestTime.Format(time.RFC3339), line.Source, line.Reason, line.Outcome, line.Ticks)
	if line.Detail != "" {
		text += ": " + line.Detail
	}
	return text
}
