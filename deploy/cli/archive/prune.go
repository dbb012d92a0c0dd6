package archive

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/marketlog/marketlog/deploy/cli/command"
	"github.com/marketlog/marketlog/deploy/operations"
)

// pruneCommand is `marketlog archive prune`.
func pruneCommand(rt *command.Runtime) *cobra.Command {
	var limit int64
	var dryRun bool
	cmd := &cobra.Command{
		Use: "prune", Short: "Delete the oldest ticks and prices beyond a bound", Args: cobra.NoArgs,
		Long: `Delete the oldest archived ticks and prices until the archive is at most --bytes large. A running instance does it by itself at
archive.bytes. The other topics, and the newest segment of each partition, are kept whatever their size.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			out, err := rt.Output(cmd)
			if err != nil {
				return err
			}
			cfg, _, err := rt.Load(cmd)
			if err != nil {
				return err
			}
			if !cmd.Flags().Changed("bytes") {
				limit = cfg.ArchiveBound()
			}
			if limit < 0 {
				return fmt.Errorf("--bytes %d is negative; use 0 or more", limit)
			}
			store, err := cfg.OpenArchive()
			if err != nil {
				return err
			}
			pruned, err := operations.PruneArchive(cmd.Context(), store, limit, dryRun)
			if err != nil {
				return err
			}
			if !out.Objects() {
				out.Row("TOPIC", "SEGMENTS", "BYTES", "UP TO")
			}
			for _, topic := range pruned {
				if out.Objects() {
					if err := out.Object(topic); err != nil {
						return err
					}
					continue
				}
				out.Row(topic.Topic, topic.Segments, topic.Bytes, topic.UpTo.Format("2006-01-02T15:04:05Z07:00"))
			}
			return out.Flush()
		},
	}
	cmd.Flags().Int64Var(&limit, "bytes", 0, "how large the archive may be; default: archive.bytes")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "only list what would be deleted")
	return cmd
}
