package config

import (
	"fmt"
	"os"
	"strings"

	"github.com/marketlog/marketlog/query"
	"github.com/marketlog/marketlog/query/limits"
)

// PlansConfig reports what keys may do.
type PlansConfig struct {
	// File is a table of plans, in YAML, that takes the place of the built-in one; every process that answers needs the
	// same. Empty: the built-in one.
	File string `koanf:"file"`
}

// load reads the table of plans.
func (c PlansConfig) load() (map[string]limits.Plan, Faults) {
	if c.File == "" {
		return limits.DefaultPlans(), nil
	}
	content, err := os.ReadFile(c.File)
	if err != nil {
		return nil, Faults{{Key: "plans.file", Value: c.File, Problem: "cannot be read: " + err.Error(), Remedy: "name a file that this process may read"}}
	}
	plans, found := limits.ParsePlans(content)
	var faults Faults
	for _, f := range found {
		key := strings.TrimSuffix("plans."+f.Key, ".")
		faults = append(faults, Fault{Key: key, Value: f.Value, Origin: "file " + c.File, Problem: f.Problem, Remedy: f.Remedy})
	}
	return plans, faults
}

// LoadPlans is the table of plans of this installation.
func (c Config) LoadPlans() (map[string]limits.Plan, error) {
	plans, faults := c.Plans.load()
	if err := faults.Err(); err != nil {
		return nil, fmt.Errorf("reading the plans: %w", err)
	}
	return plans, nil
}

// proxies names what is wrong among proxies.
func (f *Faults) proxies(key string, list []string) {
	for _, proxy := range list {
		if _, err := query.ParseProxies([]string{proxy}); err != nil {
			f.add(key, proxy, "is neither an address nor a network", "use an address such as 10.0.0.7, or a network such as 10.0.0.0/8")
		}
	}
}
