package main

// proof is something that the repository promises and that only a long run shows.
type proof struct {
	// name is that of its file in docs/proofs, and target the make target that writes it.
	name, target string
	shows        string
	// covers are the folders whose code it is about.
	covers []string
}

var proofs = []proof{
	{"kills", "kills", "no acknowledged tick is lost or doubled, however often the process is killed at each step",
		[]string{"deploy/embedded", "deploy/roles", "processors", "producers", "schemas", "stream"}},
	{"split-kills", "kills", "the same of roles in processes of their own on Kafka and Redis",
		[]string{"deploy/cli", "deploy/embedded/engine", "deploy/roles", "processors", "producers", "schemas", "stream"}},
	{"hour", "hour", "every view folded again from the log of an hour with faults is what the running instance wrote",
		[]string{"processors", "producers", "schemas", "stream"}},
	{"budget", "budget", "two days of simulated time stay within the disk budget and within memory, and what is left of the past is what a replay makes",
		[]string{"deploy/diskbudget", "deploy/instance", "processors", "schemas", "stream"}},
	{"seeds", "seeds", "folds of log minutes agree with their oracles, and begun again at any minute with themselves",
		[]string{"processors/apy", "processors/defi", "processors/earn", "processors/markets"}},
	{"admission", "admission", "replicas over a Redis that is killed, frozen and flushed never admit more than the limit",
		[]string{"query/limits"}},
	{"statements", "soak", "random SQL statements end at most their own process, and what the owner asks is answered",
		[]string{"deploy/embedded/engine", "deploy/embedded/sqlport"}},
	{"beside-statements", "soak", "prices go on beside hostile SQL statements",
		[]string{"deploy/embedded/engine", "deploy/embedded/sqlport", "deploy/roles", "query"}},
	{"sockets", "damages", "all sockets of a server that died are served again within ten seconds",
		[]string{"deploy/roles", "query/ws"}},
	{"full-disk", "damages", "a full disk loses nothing that was acknowledged, and all goes on when there is room",
		[]string{"deploy/diskguard", "deploy/embedded", "producers/outbox", "stream"}},
	{"archive", "damages", "a log that rolls is in archive and brokers once, however often its archiver is killed or cannot write",
		[]string{"deploy/embedded", "deploy/instance", "deploy/roles", "stream"}},
	{"damages", "damages", "each damage of a data directory is named, mended, and the views are what they were",
		[]string{"deploy/cli", "deploy/embedded", "processors", "stream"}},
	{"disturbances", "disturb", "the engine in a process of its own survives what clients, signals and a busy machine do to it",
		[]string{"deploy/cli", "deploy/embedded/engine"}},
	{"formats", "formats", "every format of the SQL port is whole by parsers that share nothing with the engine",
		[]string{"deploy/embedded/engine"}},
}
