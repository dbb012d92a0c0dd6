package cli

import (
	"fmt"
	"runtime"

	"github.com/marketlog/marketlog/deploy/operations"
	"github.com/spf13/cobra"
)

func (a *App) versionCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			inJSON, err := asJSON(cmd)
			if err != nil {
				return err
			}
			platform := runtime.GOOS + "/" + runtime.GOARCH
			if inJSON {
				return a.printJSON(map[string]string{"version": operations.Version(), "go": runtime.Version(), "platform": platform})
			}
			fmt.Fprintf(a.Stdout, "marketlog %s (%s, %s)\n", operations.Version(), runtime.Version(), platform)
			return nil
		},
	}
	addOutputFlag(cmd.Flags())
	return cmd
}
