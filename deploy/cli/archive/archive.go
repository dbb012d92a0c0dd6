// Package archive is the commands on the archive of the log. They read its files or objects, whether an instance runs or not.
package archive

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/marketlog/marketlog/deploy/cli/command"
	"github.com/marketlog/marketlog/deploy/config"
	"github.com/marketlog/marketlog/deploy/operations"
)

// Command is `marketlog archive`.
func Command(rt *command.Runtime) *cobra.Command {
	cmd := &cobra.Command{Use: "archive", Short: "Look at the archive of the log, verify it, and make it smaller"}
	status := &cobra.Command{
		Use: "status", Short: "List what the archive has of each partition", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := list(rt, cmd, false)
			return err
		},
	}
	var deep bool
	verify := &cobra.Command{
		Use: "verify", Short: "Check the archive: the chain of its segments, with --deep also every byte and record", Args: cobra.NoArgs,
		Long: `Check the archive: that its segments follow each other, are chained by their digests and have their sizes; with --deep also
the checksum of each file and the digest of its records. The exit code is 1 if something is damaged or missing.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			faults, err := list(rt, cmd, deep)
			if err == nil && faults > 0 {
				err = command.ErrReported
			}
			return err
		},
	}
	verify.Flags().BoolVar(&deep, "deep", false, "read every file whole")
	for _, c := range []*cobra.Command{status, verify, pruneCommand(rt)} {
		config.AddInstanceFlags(c.Flags())
		command.AddOutputFlag(c.Flags())
		cmd.AddCommand(c)
	}
	return cmd
}

// list prints what the archive has, and returns how many faults and gaps it has.
func list(rt *command.Runtime, cmd *cobra.Command, deep bool) (faults int, err error) {
	out, err := rt.Output(cmd)
	if err != nil {
		return 0, err
	}
	cfg, err := rt.LoadInstance(cmd)
	if err != nil {
		return 0, err
	}
	store, err := cfg.OpenArchive()
	if err != nil {
		return 0, err
	}
	if !out.Objects() {
		out.Row("TOPIC", "PARTITION", "SEGMENTS", "FIRST", "NEXT", "BYTES", "STATE")
	}
	err = operations.InspectArchive(cmd.Context(), store, deep, func(s operations.ArchiveStatus) error {
		faults += len(s.Faults) + len(s.Gaps)
		if out.Objects() {
			return out.Object(s)
		}
		out.Row(s.Topic, s.Partition, s.Segments, s.First, s.Next, s.Bytes, state(s))
		return nil
	})
	if err != nil {
		return faults, err
	}
	return faults, out.Flush()
}

// state is "whole", or the first of what is wrong.
func state(s operations.ArchiveStatus) string {
	switch {
	case len(s.Faults) > 0:
		return fmt.Sprintf("%d faults: %s", len(s.Faults), s.Faults[0])
	case len(s.Gaps) > 0:
		return fmt.Sprintf("%d holes, the first from %d to %d", len(s.Gaps), s.Gaps[0].From, s.Gaps[0].Next)
	}
	return "whole"
}
