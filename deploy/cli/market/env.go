package market

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/marketlog/marketlog/deploy/cli/command"
	"github.com/marketlog/marketlog/deploy/config"
)

func envCommand(rt *command.Runtime) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "env",
		Short: "Print the address and a key of the running instance, for a shell to export",
		Long: "Print the address and a key of the running instance as lines for a shell. The key has the plan pro, is made at the first use and kept in the\n" +
			"data directory, in " + keyFile + ".",
		Example: `  eval "$(marketlog env)"`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := connect(rt, cmd)
			if err != nil {
				return err
			}
			// A kept key may have been revoked since: asking for its use renews it then.
			if _, err := c.GetUsage(cmd.Context()); err != nil {
				return c.shown(err)
			}
			_, err = fmt.Fprintf(rt.Stdout, "export %s=%s\nexport %s=%s\n", config.UrlVariable, c.server.base, config.ApiKeyVariable, c.server.key)
			return err
		},
	}
	config.AddInstanceFlags(cmd.Flags())
	return cmd
}
