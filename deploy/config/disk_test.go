package config

import "testing"

// The disk budget counts what is embedded: the archive is bounded by it where it counts it, else by itself.
func TestDiskBudgetCountsWhatIsEmbedded(t *testing.T) {
	const budget, own = 30_000_000_000, 5 << 30
	for _, test := range []struct {
		name            string
		set             func(c *Config)
		budget, archive int64
		counted         bool
	}{
		{"all embedded", func(*Config) {}, budget, budget, true},
		{"an archive with a bound of its own", func(c *Config) { c.Archive.Bytes = own }, budget, own, true},
		{"an archive in a bucket", func(c *Config) { c.Archive.Bucket.Name = "b" }, budget, defaultArchiveBytes, false},
		{"no archive", func(c *Config) { c.Archive.Enabled = "false" }, budget, defaultArchiveBytes, false},
		{"a ClickHouse server", func(c *Config) { c.ClickHouse.Addr = []string{"h:8123"} }, budget, budget, true},
		{"a cluster", func(c *Config) { c.Kafka.Brokers = []string{"k:9092"} }, budget, defaultArchiveBytes, false},
		{"a cluster that is archived", func(c *Config) { c.Kafka.Brokers, c.Archive.Enabled = []string{"k:9092"}, "true" }, budget, defaultArchiveBytes, false},
		{"nothing embedded", func(c *Config) { c.Kafka.Brokers, c.ClickHouse.Addr = []string{"k:9092"}, []string{"h:8123"} }, 0, defaultArchiveBytes, false},
		{"no budget", func(c *Config) { c.Retention.DiskBytes = 0 }, 0, defaultArchiveBytes, false},
	} {
		cfg := DefaultConfig()
		test.set(&cfg)
		if got := cfg.DiskBudget(); got != test.budget {
			t.Errorf("%s: the budget is %d, want %d", test.name, got, test.budget)
		}
		if got := cfg.ArchiveBound(); got != test.archive {
			t.Errorf("%s: the archive's bound is %d, want %d", test.name, got, test.archive)
		}
		if got := cfg.ArchiveInBudget(); got != test.counted {
			t.Errorf("%s: the budget counts the archive: %v, want %v", test.name, got, test.counted)
		}
	}
}
