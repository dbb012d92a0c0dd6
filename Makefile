# `make help` lists the targets.
.DEFAULT_GOAL := help
MAKEFLAGS += --no-builtin-rules
SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c

BUF  := tools/node_modules/.bin/buf
GATE := go -C tools run ./gate
# PROVE runs `go test` and writes what it showed to docs/proofs.
PROVE := go -C tools run ./proofs record

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## Build bin/marketlog (no cgo) and fetch the ClickHouse engine it loads
	CGO_ENABLED=0 go build -trimpath -o bin/marketlog .
	./bin/marketlog engine fetch

engine: build ## The same: the program fetches its engine into the user's cache folder, once

run: build ## Run everything on the built-in simulator, under data/demo
	./bin/marketlog run --data-dir ./data/demo --feeds sim

live: build ## Run everything on the public exchanges, under data/live
	./bin/marketlog run --data-dir ./data/live --feeds live

test: build kafka contract mcp browser promtool s3 $(BUF) ## The quick gate: format, lint with vet, schemas, most tests; ends with a table of tiers, tests and skips
	$(GATE) format lint schemas quick $(if $(WHOLE_GATE),deadcode vulnerabilities release slow)

slow: build kafka contract mcp browser promtool s3 $(BUF) ## The tests and checks that the quick gate leaves out
	$(GATE) deadcode vulnerabilities release slow

gate: ## The whole gate: test and slow in one
	WHOLE_GATE=1 $(MAKE) test

nightly: ## What takes hours: a thousand kills, an hour of simulated time, two days within a disk budget, starts behind kills, more seeds, fuzzing, admission, statements, races; the chart and the archives of a release
	$(MAKE) -k kills hour budget restarts seeds fuzz admission soak formats walk damages disturb races chart release-snapshot

check: $(BUF) ## The gate without the tests: format, lint with vet, dead code, known vulnerabilities, schemas
	$(GATE) format lint deadcode vulnerabilities schemas

generate: $(BUF) ## Generate the Go code of schemas/events
	tools/generate.sh

web: browser ## Build the scripts of the pages (query/pages/dist, which is committed) from query/pages/web
	node tools/web/build.mjs

pictures: build browser ## Make the pictures of the README (docs/pictures), by the test of the pages in a browser
	go test -run '^TestDemoPagesInABrowser$$' -count 1 -timeout 20m ./deploy/e2e -args -pictures

clients: build ## Write the generated part of the client libraries (query/clients) and samples of their use from what the program says of itself
	tools/clients/write.sh

# In memory where there is room, some 8 GB: what a disk writes back meanwhile decides otherwise. The page names the folder.
figures: build kafka ## Measure every figure in one go, some 30 minutes, and write docs/figures.md whole; broken off, it goes on where it stopped
	TMPDIR=$${TMPDIR:-$$(test -d /dev/shm && echo /dev/shm || echo /tmp)} go -C tools run ./figures

admission: ## Ten minutes of three replicas over a Redis that is killed, frozen and flushed, at three limits; logs to bin/admission-*.jsonl
	mkdir -p bin
	MARKETLOG_ADMISSION=$${MARKETLOG_ADMISSION:-10m} MARKETLOG_ADMISSION_LOG=$(CURDIR)/bin \
	  $(PROVE) admission -run '^TestAdmissionOverRedis$$' -count 1 -timeout 2h ./query/limits

kills: build kafka ## 1,000 kills of the process, and a fifth as many of roles apart; resumes by bin/chaos.jsonl, which has a line a round
	mkdir -p bin
	export MARKETLOG_KILLS=$${MARKETLOG_KILLS:-1000} MARKETLOG_KILL_REPORT=$(CURDIR)/bin/chaos.jsonl; ended=0; \
	$(PROVE) kills -run '^TestKillLosesNothing$$' -count 1 -timeout 12h ./deploy/chaos || ended=1; \
	$(PROVE) split-kills -run '^TestKillSplitLosesNothing$$' -count 1 -timeout 12h ./deploy/chaos || ended=1; \
	go test -run '^TestKillNeverTurnsBackTheCache$$|^TestKillsInTheFirstBackfillLoseNothing$$' -count 1 -timeout 2h -v ./deploy/chaos || ended=1; \
	exit $$ended

chaos: build kafka ## The same, detached; writes bin/chaos.log
	mkdir -p bin
	set -m; nohup $(MAKE) kills >>bin/chaos.log 2>&1 </dev/null & \
	  echo "chaos: running as process group $$! (kill -- -$$! ends it), writing bin/chaos.log and bin/chaos.jsonl"

hour: build ## An hour of simulated time, up to sixty times as fast, with faults; then every view is folded again and compared
	MARKETLOG_HOUR=$${MARKETLOG_HOUR:-60m} $(PROVE) hour -run '^TestReplayEqualsAnAcceleratedRunWithFaults$$' -count 1 -timeout 2h ./deploy/e2e

budget: build ## Two days of simulated time within a small disk budget; then every view that is left is folded again and compared
	MARKETLOG_BUDGETED=$${MARKETLOG_BUDGETED:-48h} $(PROVE) budget -run '^TestAcceleratedRunStaysWithinItsBudgets$$' -count 1 -timeout 6h ./deploy/e2e

damages: build engine ## A disk that is filled three times; an archive that is killed a hundred times, filled and read-only; 10,000 sockets that come back at once; a demo of ten minutes whose copies are damaged and mended
	MARKETLOG_SOCKETS=$${MARKETLOG_SOCKETS:-10000} $(PROVE) sockets -run '^TestAllSocketsComeBackAtOnce$$' -count 1 -timeout 1h ./deploy/chaos
	MARKETLOG_FULL_DISKS=$${MARKETLOG_FULL_DISKS:-3} $(PROVE) full-disk -run '^TestFullDiskLosesNothing$$' -count 1 -timeout 1h ./deploy/chaos
	MARKETLOG_ARCHIVE_KILLS=$${MARKETLOG_ARCHIVE_KILLS:-100} $(PROVE) archive -run '^TestKillLosesNothingOfTheArchive$$|^TestFullArchiveLosesNothing$$' -count 1 -timeout 2h ./deploy/chaos
	MARKETLOG_DAMAGES=$${MARKETLOG_DAMAGES:-10m} $(PROVE) damages -run '^TestDamagesOfADemoAreMended$$' -count 1 -timeout 2h ./deploy/e2e

restarts: build ## How long after a kill a fresh price is answered: twenty kills a minute apart of a demo of twenty minutes, on a machine that does nothing else
	go test -run '^$$' -bench '^BenchmarkFreshAfterKill$$' -benchtime 20x -timeout 2h ./deploy/e2e -args -restart-age 20m -restart-pause 1m

disturb: build engine ## A thousand rounds in which clients, signals, full memory and a busy machine disturb `marketlog engine`
	MARKETLOG_ENGINE_ROUNDS=$${MARKETLOG_ENGINE_ROUNDS:-1000} $(PROVE) disturbances -run '^TestDisturbedEngineLives$$' -count 1 -timeout 6h ./deploy/chaos

formats: build contract ## Answers of three million rows in every format of the SQL port, read by other parsers
	MARKETLOG_FORMAT_ROWS=$${MARKETLOG_FORMAT_ROWS:-3000000} $(PROVE) formats -run '^TestLongAnswersAreReadByOtherParsers$$' -count 1 -timeout 2h ./deploy/embedded/engine

walk: build contract ## Requests that schemathesis makes of the OpenAPI document, to all operations of a running instance
	go test -run '^TestDemoWithstandsSchemathesis$$' -count 1 -timeout 1h -v ./deploy/e2e -args -all-operations

seeds: ## Folds of log minutes on a hundred more random logs each, beside their oracles and begun again at any minute
	MARKETLOG_SEEDS=$${MARKETLOG_SEEDS:-100} $(PROVE) seeds -count 1 -timeout 2h \
	  ./processors/apy ./processors/earn ./processors/defi ./processors/markets ./deploy/chaos/oracle

soak: engine ## An hour of random SQL statements, named where they end their process (LEARN=1 keeps what ran); ten minutes of hostile ones beside the demo
	MARKETLOG_SOAK=$${MARKETLOG_SOAK:-1h} $(PROVE) statements -run '^TestRandomStatements$$' -count 1 -timeout 3h ./deploy/embedded/sqlport $(if $(LEARN),-learn)
	MARKETLOG_BESIDE=$${MARKETLOG_BESIDE:-10m} $(PROVE) beside-statements -run '^TestDemoGoesOnBesideStatements$$' -count 1 -timeout 1h ./deploy/e2e

chart: ## Render, lint and decode the Helm chart by Helm's own packages, which take minutes to compile; the gate checks its settings without them
	$(GATE) chart

races: build kafka ## The slow tests with the race detector, which the gate runs without it
	$(GATE) races

fuzz: engine ## Guided fuzzing: every decoder of outside bytes, and the REST and MCP interfaces, a minute each
	grep -rE --include='*_test.go' '^func Fuzz' producers query schemas stream deploy | sed -E 's,/[^/]+:func (Fuzz[A-Za-z]+).*, \1,' | \
	  while read -r folder target; do \
	    go test "./$$folder" -run '^$$' -fuzz "^$$target\$$" -fuzztime "$${MARKETLOG_FUZZ:-1m}" -fuzzminimizetime 3s; \
	  done

proofs: ## List what long tests showed: result, counts, age, and whether the code that each covers has changed since
	@go -C tools run ./proofs

sbom: build ## Write what the binary is made of to bin/sbom.json (CycloneDX); the engine it loads is in deploy/embedded/engine/pins.txt
	go run github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.10.0 bin -json -output bin/sbom.json bin/marketlog

release-snapshot: ## Make the archives of a release of this commit in bin/release, for four platforms, and look into each; publishes nothing
	tools/goreleaser/snapshot.sh

clean: ## Remove what was built; what lies under data/ stays
	rm -rf bin tools/node_modules tools/web/node_modules

kafka:
	tools/kafka/fetch.sh

contract:
	tools/contract/fetch.sh

mcp:
	tools/mcp/fetch.sh

browser:
	tools/web/fetch.sh

promtool:
	tools/promtool/fetch.sh

s3:
	tools/s3/fetch.sh

rules: promtool ## Check the alerts and run their unit tests, by Prometheus' own promtool
	go test -run '^TestAlerts|^TestEveryAlert' -count 1 -v ./deploy/e2e

$(BUF): tools/package.json tools/package-lock.json
	cd tools && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
	touch $@

.PHONY: help build engine run live test slow gate nightly check generate clients pictures figures proofs admission kills budget chaos damages restarts disturb formats seeds soak fuzz races sbom release-snapshot walk chart clean kafka contract mcp browser web promtool s3 rules
