package deploy

import (
	"fmt"
	"strconv"

	"github.com/spf13/cobra"
)

func (a *App) deadCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "dead", Short: "Look at messages that could not become ticks"}
	var source, reason string
	var count int
	list := &cobra.Command{
		Use:   "list",
		Short: "List them, the newest first",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.ask(cmd, `SELECT topic, log_offset, ingest_time, source, reason, detail FROM v_dead_letters
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
	for _, c := range []*cobra.Command{list, show} {
		addInstanceFlags(c.Flags())
		addOutputFlag(c.Flags())
		cmd.AddCommand(c)
	}
	return cmd
}
