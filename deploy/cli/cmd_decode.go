package cli

import (
	"github.com/spf13/cobra"

	"github.com/marketlog/marketlog/deploy/cli/command"
	"github.com/marketlog/marketlog/producers/decode"
	"github.com/marketlog/marketlog/producers/exchanges"
	"github.com/marketlog/marketlog/producers/sources"
)

func decodeCommand(rt *command.Runtime) *cobra.Command {
	var opts decode.Options
	cmd := &cobra.Command{
		Use:   "decode --source NAME FILE",
		Short: "Decode recorded messages of a source, and print one event per line",
		Args: func(cmd *cobra.Command, args []string) error {
			if opts.List {
				return cobra.NoArgs(cmd, args)
			}
			return cobra.ExactArgs(1)(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				opts.File = args[0]
			}
			if decode.Run(cmd.Context(), opts, exchanges.List(), sources.List(), rt.Stdin, rt.Stdout, rt.Stderr) != 0 {
				return command.ErrReported
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&opts.Source, "source", "", "venue or source of the messages; --list prints all names")
	cmd.Flags().StringVar(&opts.Instruments, "instruments", "", "`FILE` with the venue's list of instruments")
	cmd.Flags().BoolVar(&opts.List, "list", false, "list the sources")
	return cmd
}
