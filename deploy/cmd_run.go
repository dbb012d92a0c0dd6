package deploy

import (
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
			if err := setOrigins(cfg.ValidateFor(role), settingOrigins(settings)); err != nil {
				return err
			}
			return run(cmd.Context(), cfg, role, a.Stdout, newLogger(cfg.Log, a.Stderr))
		},
	}
	addConfigFlags(cmd.Flags())
	return cmd
}
