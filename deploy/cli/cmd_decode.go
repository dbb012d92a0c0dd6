package cli

import (
	"github.com/spf13/cobra"

	"github.com/marketlog/marketlog/producers/decode"
	"github.com/marketlog/marketlog/producers/exchanges"
	"github.com/marketlog/marketlog/producers/sources"
)

func (a *App) decodeCommand() *cobra.Command {
	var opts decode.Options
	cmd := &cobra.Command{
		Use:   "decode --source NAME FILE",
		Short: "Print what recorded messages of a source say, one event a line",
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
			if decode.Run(cmd.Context(), opts, exchanges.List(), sources.List(), a.Stdin, a.Stdout, a.Stderr) != 0 {
				return errReported
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&opts.Source, "source", "", "whose messages they are; --list names all")
	cmd.Flags().StringVar(&opts.Instruments, "instruments", "", "`FILE` with the venue's own list of instruments")
	cmd.Flags().BoolVar(&opts.List, "list", false, "list the sources")
	return cmd
}
