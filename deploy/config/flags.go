package config

import (
	"fmt"

	"github.com/spf13/pflag"
)

// AddInstanceFlags adds what every command takes that talks to an instance.
func AddInstanceFlags(flags *pflag.FlagSet) {
	d := DefaultConfig()
	flags.String("config", "", "configuration `FILE`, else $MARKETLOG_CONFIG, else marketlog.yaml in the data directory")
	flags.String("data-dir", d.DataDir, "`DIR` of the instance")
	flags.String("kafka-listen", d.Kafka.Listen, "`HOST:PORT` of the embedded broker")
}

// AddConfigFlags adds every flag that sets a key of the configuration.
func AddConfigFlags(flags *pflag.FlagSet) {
	d := DefaultConfig()
	AddInstanceFlags(flags)
	flags.String("listen", d.Listen, "`HOST:PORT` of REST and stream")
	flags.String("metrics-listen", d.MetricsListen, "`HOST:PORT` of /metrics, /healthz and /readyz")
	flags.String("sql-listen", d.SQLListen, "`HOST:PORT` of read-only SQL, loopback; empty for none")
	flags.String("feeds", d.Feeds, "sim, live or none")
	flags.String("sim-speed", fmt.Sprint(d.Sim.Speed), "simulated seconds in a second, `N`; above 1 the run starts 30 days in the past")
	flags.String("sim-seed", fmt.Sprint(d.Sim.Seed), "`N` that decides every simulated price")
	flags.String("sim-rate", fmt.Sprint(d.Sim.Rate), "messages `N` a second of all simulated venues together")
	flags.String("log-level", d.Log.Level, "debug, info, warn or error")
}
