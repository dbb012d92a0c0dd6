package operations

import (
	"slices"

	"github.com/marketlog/marketlog/deploy/admin"
	"github.com/marketlog/marketlog/deploy/instance"
)

// InstanceVerbs are what commands can ask of an instance.
func InstanceVerbs(in *instance.Instance) admin.Verbs {
	if in.Stream.Brokers == nil { // an engine alone
		return admin.NewVerbs()
	}
	return admin.NewVerbs(append(slices.Concat(keyVerbs(in), backfillVerbs(in), SourceVerbs(in), symbolVerbs(in), correctionVerbs(in), tablesVerbs(in), importVerbs(in)),
		replayVerb(in), RebuildVerb(in), retryVerb(in), migrateVerb(in), SimFaultsVerb(in), earnVerb(in), openVerb(in), exportVerb(in), lakeVerb(in))...)
}
