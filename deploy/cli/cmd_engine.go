package cli

import (
	"github.com/marketlog/marketlog/deploy/config"
	"github.com/spf13/cobra"
)

// engineCommand serves the embedded engine by itself, for roles apart on a machine that has no ClickHouse server.
func (a *App) engineCommand() *cobra.Command {
	cmd := a.runCommand("engine", "Run only the embedded ClickHouse engine, for the other roles to reach over HTTP")
	cmd.Long = `Run only the embedded ClickHouse engine. The other roles name its address in clickhouse.addr, and give the
password of clickhouse.password_file, which is the same file here. It takes the place of a ClickHouse server on one
machine; it is no cluster. Where the engine dies, it is started again; the other roles wait for it.

Of the tables in its data directory it serves read-only SQL too, for analysts, on the address of --sql-listen.`
	cmd.Flags().String("clickhouse-listen", config.DefaultConfig().ClickHouse.Listen, "`HOST:PORT` for the other roles, loopback")
	for _, name := range []string{"listen", "kafka-listen", "feeds", "sim-speed", "sim-seed"} {
		_ = cmd.Flags().MarkHidden(name) // fails on an unknown name only: these change nothing here
	}
	cmd.Flags().Bool(supervisedFlag, false, "serve, for a supervisor at the other end of the standard input")
	_ = cmd.Flags().MarkHidden(supervisedFlag)
	serve := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if supervised, _ := cmd.Flags().GetBool(supervisedFlag); supervised {
			cmd.SetContext(onLeash(cmd.Context(), a.Stdin))
			return serve(cmd, args)
		}
		cfg, settings, err := a.load(cmd)
		if err != nil {
			return err
		}
		if err := config.SetOrigins(cfg.ValidateFor("engine"), config.SettingOrigins(settings)); err != nil {
			return err
		}
		return a.superviseEngine(cmd.Context(), newLogger(cfg.Log, a.Stderr))
	}
	return cmd
}
