package cli

import (
	"github.com/spf13/cobra"

	"github.com/marketlog/marketlog/deploy/cli/command"
	"github.com/marketlog/marketlog/deploy/config"
)

// engineCommand serves the embedded engine by itself, for roles apart on a machine that has no ClickHouse server.
func engineCommand(rt *command.Runtime) *cobra.Command {
	cmd := runCommand(rt, "engine", "Run only the embedded ClickHouse engine, for the other roles to reach over HTTP")
	cmd.Long = `Run only the embedded ClickHouse engine. The other roles connect to it by clickhouse.addr, with the password in
clickhouse.password_file, which must be the same file. It replaces a ClickHouse server on one machine; it is not a cluster.
If the engine process dies, it is restarted; the other roles wait for it.

It also serves read-only SQL over the tables in its data directory, for analysts, at --sql-listen.`
	cmd.Flags().String("clickhouse-listen", config.DefaultConfig().ClickHouse.Listen, "`HOST:PORT` for the other roles, loopback")
	for _, name := range []string{"listen", "kafka-listen", "feeds", "sim-speed", "sim-seed", "sim-rate"} {
		_ = cmd.Flags().MarkHidden(name) // fails on an unknown name only: these change nothing here
	}
	cmd.Flags().Bool(supervisedFlag, false, "serve under a supervisor that holds the other end of standard input")
	_ = cmd.Flags().MarkHidden(supervisedFlag)
	cmd.AddCommand(fetchCommand(rt))
	serve := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if supervised, _ := cmd.Flags().GetBool(supervisedFlag); supervised {
			leash, err := leashOf(rt.Stdin)
			if err != nil {
				return err
			}
			cmd.SetContext(onLeash(cmd.Context(), leash))
			return serve(cmd, args)
		}
		cfg, settings, err := rt.Load(cmd)
		if err != nil {
			return err
		}
		if err := config.SetOrigins(cfg.ValidateFor("engine"), config.SettingOrigins(settings)); err != nil {
			return err
		}
		if err := haveEngine(cmd, rt, cfg); err != nil {
			return err
		}
		return superviseEngine(cmd.Context(), rt, command.NewLogger(cfg.Log, rt.Stderr))
	}
	return cmd
}
