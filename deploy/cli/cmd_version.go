package cli

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/marketlog/marketlog/deploy/cli/command"
	"github.com/marketlog/marketlog/deploy/operations"
)

func versionCommand(rt *command.Runtime) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			out, err := rt.Output(cmd)
			if err != nil {
				return err
			}
			platform := runtime.GOOS + "/" + runtime.GOARCH
			if out.Objects() {
				return out.Object(map[string]string{"version": operations.Version(), "go": runtime.Version(), "platform": platform})
			}
			fmt.Fprintf(rt.Stdout, "marketlog %s (%s, %s)\n", operations.Version(), runtime.Version(), platform)
			return nil
		},
	}
	command.AddOutputFlag(cmd.Flags())
	return cmd
}
