package cli

import (
	"github.com/marketlog/marketlog/deploy/config"
	"github.com/marketlog/marketlog/deploy/roles"
	"github.com/spf13/cobra"
)

func (a *App) runCommand(role, short string) *cobra.Command {
	cmd := &cobra.Command{
		Use:   role,
		Short: short,
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, settings, err := a.load(cmd)
			if err != nil {
				return err
			}
			if err := config.SetOrigins(cfg.ValidateFor(role), config.SettingOrigins(settings)); err != nil {
				return err
			}
			return roles.Run(cmd.Context(), cfg, role, a.Stdout, newLogger(cfg.Log, a.Stderr))
		},
	}
	config.AddConfigFlags(cmd.Flags())
	return cmd
}
