package deploy

import (
	"github.com/spf13/cobra"
)

// engineCommand serves the embedded engine by itself, for roles apart on a machine that has no ClickHouse server.
func (a *App) engineCommand() *cobra.Command {
	cmd := a.runCommand("engine", "Run only the embedded ClickHouse engine, for the other roles to reach over HTTP")
	cmd.Long = `Run only the embedded ClickHouse engine. The other roles name its address in clickhouse.addr, and give the
password of clickhouse.password_file, which is the same file here. It takes the place of a ClickHouse server on one
machine; it is no cluster.

Of the tables in its data directory it serves read-only SQL too, for analysts, on the address of --sql-listen.`
	cmd.Flags().String("clickhouse-listen", DefaultConfig().ClickHouse.Listen, "`HOST:PORT` for the other roles, loopback")
	for _, name := range []string{"listen", "kafka-listen", "feeds", "sim-speed", "sim-seed"} {
		_ = cmd.Flags().MarkHidden(name) // fails on an unknown name only: these change nothing here
	}
	return cmd
}
