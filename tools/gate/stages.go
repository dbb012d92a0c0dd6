package main

import (
	"maps"
	"slices"
	"strings"
)

// A test belongs to one stage: quick, which `make test` runs, or slow, which `make gate` runs after it. Every test that is
// not listed here is quick. What takes hours is the long form of a slow or quick test, by a variable: `make nightly`.

// slow are the tests that `make test` leaves out, by package. The go command skips by name alone, so each name is unique in
// the repository.
var slow = map[string][]string{
	"deploy/cli": {
		"TestAcceleratedRunFallsToRealTime", "TestBackfillWaitsForRoom", "TestDeadLettersAreReadAgainOnce", "TestDiskBudgetDropsTheOldest", "TestDoctorNamesDamagedParts", "TestFaultyVenueHarmsNoOther", "TestLongWorkIsRefusedWithoutRoom", "TestLostPartIsFilledAgainFromTheLog",
		"TestOwnBackfillIsEndedLikeAnother", "TestStartReadsWhatChartsShow", "TestVenueThatIsDownDelaysNoStart",
	},
	"deploy/e2e": {
		"TestAddedFoldRunsFromLogToReplay", "TestDamagesOfADemoAreMended", "TestDemoDocumentSuitsTools", "TestDemoPagesInABrowser", "TestDemoPublishesNothingBeforeItHappened", "TestDemoServesTheClients", "TestDemoHasAShellForStatements", "TestDemoExplainsEveryNumber", "TestDemoChartsAreTheSameLater", "TestDemoServesTheExamples", "TestDemoSuitsDBT", "TestDemoWithstandsSchemathesis", "TestImages",
		"TestDemoAnswersAsTheDocumentShows", "TestDemoAnswersPeopleWhoKnowNoDirectoryAndNoKey", "TestDemoAnswersThePastAsItWas", "TestDemoGoesOnBesideStatements",
		"TestMergedRecordingsAgreeWithAnIndependentCalculation", "TestRecordingsRunEndToEnd",
		"TestAcceleratedRunStaysWithinItsBudgets", "TestReplayEqualsAnAcceleratedRunWithFaults",
		"TestReplayOfARunningInstance", "TestReplayReadsBehindTheBroker", "TestPastPricesAreExplained",
	},
	"deploy/chaos": {
		"TestAllSocketsComeBackAtOnce", "TestDisturbedEngineLives", "TestFullArchiveLosesNothing", "TestFullDiskLosesNothing", "TestHotReadsLeavePricesFresh", "TestKillLosesNothing",
		"TestKillLosesNothingOfTheArchive", "TestKillNeverTurnsBackTheCache",
		"TestKillSplitLosesNothing", "TestKillsInTheFirstBackfillLoseNothing", "TestMoreSocketsThanFiles", "TestSleepHidesNoAge",
		"TestStopHidesNoAge", "TestStopsDuringAReplay", "TestStoresAwayForMinutes",
	},
	"deploy/chaos/oracle":    {"TestPlantedMarketFaultsAreFound", "TestReferenceViewsEqualTheOracle"},
	"deploy/export":          {"TestAnEndedExportEqualsAWholeOne"},
	"deploy/imports":         {"TestImportsEndedAnywhereComeToTheSame"},
	"deploy/embedded":        {"TestPowerFailure", "TestStateIsMadeAnew", "TestToolsOfKafkaWork"},
	"deploy/embedded/engine": {"TestLongAnswersAreReadByOtherParsers", "TestLongAnswersParse"},
	"deploy/embedded/sqlport": {
		"TestAStatementWhoseClientLeftKeepsItsPlace", "TestPlanningCountsAsTime", "TestReadersThatHangUpEndNoProcess", "TestStatementsOutliveMerges",
	},
	"processors": {
		"TestACorrectedReplayRestatesWhatTheCorrectionsAreAbout", "TestCacheAwayIsFilledAgain", "TestClickHouseAwayHoldsTheLogBack",
		"TestDyingAnywhereLosesAndDoublesNothing", "TestFoldedMinutesAreReplayed", "TestKilledMembersLeaveTheLogWhole",
		"TestKilledReplayIsTakenUpOrGivenUp", "TestReplaysOfTheSameLogAgree", "TestRestartedFoldsWriteWhatUninterruptedOnesWrite",
		"TestRowsGoIntoTheTablesOfAReplayWhileItsControlsRequireIt", "TestRowsOlderThanTheLogAreCarriedOver", "TestSinksShareOneWriteOfTheLedger", "TestSwapUnderWritesLosesNothing",
		"TestThePastIsFoldedByWhicheverProcessLives",
		"TestVerifyFindsExactlyWhatWasTamperedWith", "TestWhatSourcesStateOtherwiseIsRecordedOnce", "TestDuplicatesChangeNothing", "TestOutputsDoNotDependOnBatches",
		"TestWhatAReplayChangesIsRecordedOnce",
	},
	"producers":                  {"TestAdaptersReadTheSimulator"},
	"producers/outbox":           {"TestBrokerAwayLosesNothing", "TestKilledWriterLosesNothingAcknowledged"},
	"producers/simulator/venues": {"TestFramesLookLikeRecordedOnes"},
	"query/charts":               {"TestChartsAsOfAnInstantAreThoseThatWereAnswered", "TestEndsOfChartsAsTheyWereServed"},
	"query/coins":                {"TestAnswersAsOfBeforeAReplayAreThoseThatWereGiven", "TestCoinsAsTheyWereServed"},
	"query/explain":              {"TestChartsOfRatesAreReproduced", "TestPastRatesAreReproduced", "TestReportedPastOfRatesIsReproduced", "TestStatsOfRatesAreReproduced"},
	"query/globalstats":          {"TestMoversAndFearGreedAsTheyWereServed", "TestSeriesAsTheyWereAnswered"},
	"query/providers":            {"TestProvidersAsTheyWereServed"},
	"query/stablecoins":          {"TestStabilityOfPegsAsItWasServed"},
	"query/limits":               {"TestAdmissionOverRedis"},
	"query/pages":                {"TestScriptsAreBuiltOfTheirSources"},
	"query/rates":                {"TestSeriesOfYieldsAsTheyWereServed"},
	"stream/archive":             {"TestABadWayToABucketLosesNothing"},
	"stream/history":             {"TestACompleteCandleStays", "TestBackfilledCandlesReadAsTheirScripts", "TestInsertingAgainChangesNothing", "TestInterruptedMigrationIsMadeAgain", "TestTablesOfLongPartitionsAreRepartitioned", "TestThePastIsFoldedExactly"},
	"stream/streamtest":          {"TestKilledKafkaKeepsWhatWasAcknowledged"},
}

// otherProcess are the packages whose tests start the program as another process: the race detector in theirs sees nothing of it.
var otherProcess = []string{"deploy/chaos", "deploy/e2e"}

// patient are the packages whose slow tests compute and hold nothing to a deadline of seconds: they take what other tests leave.
var patient = []string{"stream/history", "deploy/embedded/engine"}

// sequential are the packages that start no goroutine, to which a test holds them: the race detector would see nothing there,
// and takes twice the time.
var sequential = []string{
	"deploy", "deploy/cli/command", "deploy/cli/doctor", "deploy/config", "deploy/helm", "deploy/imports", "deploy/metrics",
	"processors/apy", "processors/candles", "processors/defi", "processors/earn", "processors/markets", "processors/median", "processors/quotes", "processors/resolve",
	"producers/exchanges", "producers/reference", "producers/simulator/market", "producers/simulator/sources", "producers/yields",
	"query/coins", "query/corrections", "query/earn", "query/explain", "query/fiat", "query/globalstats", "query/prices",
	"query/providers", "query/records", "query/restatements", "query/sql", "query/stablecoins", "query/symbols", "query/system", "query/usage",
	"schemas", "schemas/tables", "stream/faults", "stream/history", "stream/history/rows", "stream/latest",
}

// elsewhere are packages whose goroutines run what other packages promise, to whose tests the race detector is held in each gate: these are raced by
// `make races`, since compiling and running them for the detector takes minutes.
var elsewhere = []string{
	"deploy/admin", "deploy/chaos/oracle", "deploy/cli/market", "deploy/cli/sql", "deploy/export", "deploy/operations",
	"producers/backfill", "producers/fetch", "producers/simulator", "producers/simulator/simulatortest", "producers/simulator/venues",
	"query/charts", "query/keys", "query/mcp", "query/pages", "query/rates",
}

// unraced are quick tests which the race detector is spared, where it takes up to ten times as long: one goroutine decodes, and one client
// reads what another program reads again; both are done in other tests by several at once.
var unraced = map[string][]string{
	"deploy/embedded/engine": {"TestEveryFormatIsReadByAnotherParser"},
	"producers":              {"TestRecordingsDecodeAsBefore"},
}

// longest are the packages whose tests take longest, the longest first, by the table that the gate prints.
var longest = []string{
	"deploy/e2e", "deploy/chaos", "query/explain", "processors", "query/charts", "deploy/cli", "stream/history", "query/coins", "query/globalstats", "deploy/embedded/engine",
	"query/stablecoins", "query/rates", "deploy/embedded", "producers/simulator/venues", "deploy/embedded/sqlport",
}

// killTest is slow, and runs with a few kills in the quick stage besides.
const killTest = "TestKillLosesNothing"

// nightly are the tests whose long form a variable asks for, by the make target that sets it.
var nightly = map[string][]string{
	"disturb":   {"TestDisturbedEngineLives"},
	"hour":      {"TestReplayEqualsAnAcceleratedRunWithFaults"},
	"budget":    {"TestAcceleratedRunStaysWithinItsBudgets"},
	"admission": {"TestAdmissionOverRedis"},
	"soak":      {"TestRandomStatements", "TestDemoGoesOnBesideStatements"},
	"kills":     {"TestKillLosesNothing", "TestKillSplitLosesNothing"},
	"walk":      {"TestDemoWithstandsSchemathesis"},
	"formats":   {"TestLongAnswersAreReadByOtherParsers"},
	"damages":   {"TestAllSocketsComeBackAtOnce", "TestFullDiskLosesNothing", "TestDamagesOfADemoAreMended"},
}

// tiers are what tests need, by the make target that fetches it; .ci/run installs the others.
var tiers = map[string]string{
	"embedded": "engine", "kafka": "kafka", "contract": "contract", "mcp": "mcp", "browser": "browser", "bucket": "s3", "redis": "", recordings: "", "layout": "",
}

// forgiven are the skips that are no failure anywhere, by package and test, with the reason.
var forgiven = map[string]string{
	"producers/outbox TestServeBenchmarks":             "a process for benchmarks, no test",
	"release " + archive:                               "the modules of goreleaser cannot be reached from everywhere; whoever releases reaches them",
	"vulnerabilities govulncheck":                      "the vulnerability database cannot be reached from everywhere; nothing is known then",
	"deploy/e2e TestImages":                            "a machine that is laid out otherwise than the base image, or forbids to mount",
	"deploy/embedded/sqlport TestTheProcessIsConfined": "only Linux confines processes",
}

// isForgiven reports whether the skip of a test, or of a part of it, needs no back end that is missing.
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
func packages(tests map[string][]string) []string { return paths(slices.Sorted(maps.Keys(tests))) }

// paths are packages as the go command takes them.
func paths(names []string) (list []string) {
	for _, name := range names {
		list = append(list, "./"+name)
	}
	return list
}
