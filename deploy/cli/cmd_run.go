package cli

import (
	"github.com/spf13/cobra"

	"github.com/marketlog/marketlog/deploy/cli/command"
	"github.com/marketlog/marketlog/deploy/config"
	"github.com/marketlog/marketlog/deploy/roles"
)

func runCommand(rt *command.Runtime, role, short string) *cobra.Command {
	cmd := &cobra.Command{
		Use:   role,
		Short: short,
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, settings, err := rt.Load(cmd)
			if err != nil {
				return err
			}
			if err := config.SetOrigins(cfg.ValidateFor(role), config.SettingOrigins(settings)); err != nil {
				return err
			}
			if role == "run" {
				if err := haveEngine(cmd, rt, cfg); err != nil {
					return err
				}
			}
			return roles.Run(cmd.Context(), cfg, role, rt.Stdout, command.NewLogger(cfg.Log, rt.Stderr))
		},
	}
	config.AddConfigFlags(cmd.Flags())
	if role == "run" || role == "engine" {
		addFetchFlag(cmd)
	}
	return cmd
}
