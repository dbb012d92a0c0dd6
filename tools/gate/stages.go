package main

import (
	"maps"
	"slices"
	"strings"
)

// A test belongs to one stage: quick, which `make test` runs, or slow, which `make gate` runs behind it. Every test that is
// not listed here is quick. What takes hours is the long form of a slow or quick test, by a variable: `make nightly`.

// slow are the tests that `make test` leaves out, by package. The go command skips by name alone, so each name is unique in
// the repository.
var slow = map[string][]string{
	"deploy/cli": {"TestAcceleratedRunFallsToRealTime", "TestFaultyVenueHarmsNoOther", "TestStartReadsWhatChartsShow"},
	"deploy/e2e": {
		"TestDamagesOfADemoAreMended", "TestDemoDocumentSuitsTools", "TestDemoServesTheExamples", "TestDemoWithstandsSchemathesis", "TestImages",
		"TestDemoGoesOnBesideStatements", "TestMergedRecordingsAgreeWithAnIndependentCalculation", "TestReplayEqualsAnAcceleratedRunWithFaults",
		"TestReplayOfARunningInstance", "TestThousandPastPricesAreExplained",
	},
	"deploy/chaos": {
		"TestAllSocketsComeBackAtOnce", "TestDisturbedEngineLives", "TestFullDiskLosesNothing", "TestHotReadsLeavePricesFresh", "TestKillLosesNothing", "TestKillNeverTurnsBackTheCache",
		"TestKillSplitLosesNothing", "TestKillsInTheFirstBackfillLoseNothing", "TestMoreSocketsThanFiles", "TestStopOfAMinuteHidesNoAge", "TestStopsDuringAReplay",
	},
	"deploy/chaos/oracle":     {"TestPlantedMarketFaultsAreFound", "TestReferenceViewsEqualTheOracle"},
	"deploy/embedded":         {"TestStateIsMadeAnew", "TestToolsOfKafkaWork"},
	"deploy/embedded/engine":  {"TestLongAnswersAreReadByOtherParsers", "TestLongAnswersParse"},
	"deploy/embedded/sqlport": {"TestReadersThatHangUpEndNoProcess"},
	"processors": {
		"TestClickHouseAwayHoldsTheLogBack", "TestDyingAnywhereLosesAndDoublesNothing", "TestKilledMembersLeaveTheLogWhole",
		"TestKilledReplayIsTakenUpOrGivenUp", "TestReplaysOfTheSameLogAgree", "TestRestartedFoldsWriteWhatUninterruptedOnesWrite",
		"TestRowsGoIntoTheTablesOfAReplayWhileItsControlsSaySo", "TestTwinsChangeNothing", "TestOutputsDoNotDependOnBatches",
	},
	"producers":           {"TestAdaptersReadTheSimulator"},
	"producers/outbox":    {"TestBrokerAwayLosesNothing"},
	"producers/simulator": {"TestFramesLookLikeRecordedOnes"},
	"query/limits":        {"TestAdmissionOverRedis"},
	"stream/history":      {"TestBackfilledCandlesReadAsTheirScripts"},
	"stream/streamtest":   {"TestKilledKafkaKeepsWhatWasAcknowledged"},
}

// faults are the tests that exist only with the tag of that name, all of them slow.
var faults = map[string][]string{
	"producers/outbox": {"TestKilledWriterLosesNothingAcknowledged"},
	"stream/faults":    {"TestDiesAtTheNamedHit", "TestClockIsMovedAsAsked", "TestClockJumpsWithItsFile"},
}

// killTest is slow, and runs with a few kills in the quick stage besides.
const killTest = "TestKillLosesNothing"

// nightly are the tests whose long form a variable asks for, by the make target that sets it.
var nightly = map[string][]string{
	"chaos":     {"TestKillLosesNothing", "TestKillSplitLosesNothing"},
	"disturb":   {"TestDisturbedEngineLives"},
	"hour":      {"TestReplayEqualsAnAcceleratedRunWithFaults"},
	"admission": {"TestAdmissionOverRedis"},
	"soak":      {"TestRandomStatements"},
	"formats":   {"TestLongAnswersAreReadByOtherParsers"},
	"damages":   {"TestAllSocketsComeBackAtOnce", "TestFullDiskLosesNothing", "TestDamagesOfADemoAreMended"},
}

// forgiven are the skips that are no failure anywhere, by package and test, with the reason.
var forgiven = map[string]string{
	"producers/outbox TestServeBenchmarks":             "a process for benchmarks, no test",
	"vulnerabilities govulncheck":                      "the vulnerability database cannot be reached from everywhere; nothing is known then",
	"deploy/e2e TestImages":                            "a machine that is laid out otherwise than the base image, or forbids to mount",
	"deploy/embedded/sqlport TestTheProcessIsConfined": "only Linux confines processes",
}

// isForgiven says whether the skip of a test, or of a part of it, needs no back end that is missing.
func isForgiven(name string) bool {
	for known := range forgiven {
		if name == known || strings.HasPrefix(name, known+"/") {
			return true
		}
	}
	return false
}

// only is a regular expression of exactly the tests of a table, but for one.
func only(tests map[string][]string, but string) string {
	var all []string
	for _, list := range tests {
		all = append(all, list...)
	}
	all = slices.DeleteFunc(all, func(name string) bool { return name == but })
	slices.Sort(all)
	return "^(" + strings.Join(slices.Compact(all), "|") + ")$"
}

// packages are those of a table, as the go command takes them.
func packages(tests map[string][]string) []string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(tests)) {
		list = append(list, "./"+name)
	}
	return list
}
