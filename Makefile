# `make help` lists the targets.
.DEFAULT_GOAL := help
MAKEFLAGS += --no-builtin-rules
SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c

BUF  := tools/node_modules/.bin/buf
GATE := go -C tools run ./gate

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-9s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: engine ## Build bin/marketlog (no cgo) and fetch the ClickHouse engine it loads
	CGO_ENABLED=0 go build -trimpath -o bin/marketlog .

engine: ## Fetch the pinned ClickHouse engine into the user's cache folder, once
	tools/engine/fetch.sh

run: build ## Run everything on the built-in simulator, under data/demo
	./bin/marketlog run --data-dir ./data/demo --feeds sim

live: build ## Run everything on the public exchanges, under data/live
	./bin/marketlog run --data-dir ./data/live --feeds live

test: build kafka contract mcp promtool $(BUF) ## The quick gate: format, vet, lint, schemas, most tests; ends with a table of tiers, tests and skips
	$(GATE) format vet lint schemas quick

slow: build kafka contract mcp promtool $(BUF) ## The tests and checks that the quick gate leaves out
	$(GATE) vulnerabilities slow

gate: build kafka contract mcp promtool $(BUF) ## The whole gate: test and slow
	$(GATE)

nightly: build kafka ## What takes hours: a thousand kills, an hour of simulated time, more seeds, fuzzing, admission, statements
	MARKETLOG_KILLS=$${MARKETLOG_KILLS:-1000} MARKETLOG_KILL_REPORT=$(CURDIR)/bin/chaos.jsonl \
	  go test -run '^TestKill' -count 1 -timeout 12h -v ./deploy/chaos
	$(MAKE) hour seeds fuzz admission soak formats damages disturb

check: $(BUF) ## The gate without the tests: format, vet, lint, known vulnerabilities, schemas
	$(GATE) format vet lint vulnerabilities schemas

generate: $(BUF) ## Generate the Go code of schemas/events
	tools/generate.sh

bench: build kafka ## Measure the figures, each beside its limit, three times over into bin/bench.txt
	for run in 1 2 3; do go test -run '^$$' -bench . -timeout 2h ./...; done | tee bin/bench.txt
	go -C tools run ./figures <bin/bench.txt

figures: bench ## Measure them in one go and write docs/figures.md whole; what is missing leaves the page as it was
	go -C tools run ./figures <bin/bench.txt >bin/figures.md
	mv bin/figures.md docs/figures.md

admission: ## Ten minutes of three replicas over a Redis that is killed, frozen and flushed, at three limits; logs to bin/admission-*.jsonl
	mkdir -p bin
	MARKETLOG_ADMISSION=$${MARKETLOG_ADMISSION:-10m} MARKETLOG_ADMISSION_LOG=$(CURDIR)/bin \
	  go test -run '^TestAdmissionOverRedis$$' -count 1 -timeout 2h -v ./query/limits

chaos: build kafka ## 1,000 kills, detached; resumes, and appends seed and steps to bin/chaos.jsonl
	set -m; MARKETLOG_KILLS=$${MARKETLOG_KILLS:-1000} MARKETLOG_KILL_REPORT=$(CURDIR)/bin/chaos.jsonl \
	  nohup go test -run '^TestKill' -count 1 -timeout 12h -v ./deploy/chaos >>bin/chaos.log 2>&1 </dev/null & \
	  echo "chaos: running as process group $$! (kill -- -$$! ends it), writing bin/chaos.log and bin/chaos.jsonl"

hour: build ## An hour of simulated time, up to sixty times as fast, with faults; then every view is folded again and compared
	MARKETLOG_HOUR=$${MARKETLOG_HOUR:-60m} go test -run '^TestReplayEqualsAnAcceleratedRunWithFaults$$' -count 1 -timeout 2h -v ./deploy/e2e

damages: build engine ## A disk that is filled three times; 10,000 sockets that come back at once; a demo of ten minutes whose copies are damaged and mended
	MARKETLOG_SOCKETS=$${MARKETLOG_SOCKETS:-10000} go test -run '^TestAllSocketsComeBackAtOnce$$' -count 1 -timeout 1h -v ./deploy/chaos
	MARKETLOG_FULL_DISKS=$${MARKETLOG_FULL_DISKS:-3} go test -run '^TestFullDiskLosesNothing$$' -count 1 -timeout 1h -v ./deploy/chaos
	MARKETLOG_DAMAGES=$${MARKETLOG_DAMAGES:-10m} go test -run '^TestDamagesOfADemoAreMended$$' -count 1 -timeout 2h -v ./deploy/e2e

disturb: build engine ## A thousand rounds in which clients, signals, full memory and a busy machine disturb `marketlog engine`
	MARKETLOG_ENGINE_ROUNDS=$${MARKETLOG_ENGINE_ROUNDS:-1000} go test -run '^TestDisturbedEngineLives$$' -count 1 -timeout 6h -v ./deploy/chaos

formats: build contract ## Answers of three million rows in every format of the SQL port, read by other parsers
	MARKETLOG_FORMAT_ROWS=$${MARKETLOG_FORMAT_ROWS:-3000000} go test -run '^TestLongAnswersAreReadByOtherParsers$$' -count 1 -timeout 2h -v ./deploy/embedded/engine

seeds: ## Folds of log minutes on a hundred more random logs each, beside their oracles and begun again at any minute
	MARKETLOG_SEEDS=$${MARKETLOG_SEEDS:-100} go test -count 1 -timeout 2h ./processors/apy ./processors/earn ./processors/defi ./processors/markets
	MARKETLOG_SEEDS=$${MARKETLOG_SEEDS:-100} go test -run '^TestMarketsEqualTheOracle$$' -count 1 -timeout 2h ./deploy/chaos/oracle

soak: engine ## An hour of random SQL statements, named where they end their process (LEARN=1 keeps what ran); ten minutes of hostile ones beside the demo
	MARKETLOG_SOAK=$${MARKETLOG_SOAK:-1h} go test -run '^TestRandomStatements$$' -count 1 -timeout 3h -v ./deploy/embedded/sqlport $(if $(LEARN),-learn)
	MARKETLOG_BESIDE=$${MARKETLOG_BESIDE:-10m} go test -run '^TestDemoGoesOnBesideStatements$$' -count 1 -timeout 1h -v ./deploy/e2e

fuzz: engine ## Guided fuzzing: every decoder of outside bytes, and the REST and MCP doors, a minute each
	grep -rE --include='*_test.go' '^func Fuzz' producers query schemas stream deploy | sed -E 's,/[^/]+:func (Fuzz[A-Za-z]+).*, \1,' | \
	  while read -r folder target; do \
	    go test "./$$folder" -run '^$$' -fuzz "^$$target\$$" -fuzztime "$${MARKETLOG_FUZZ:-1m}" -fuzzminimizetime 3s; \
	  done

sbom: build ## Write what the binary is made of to bin/sbom.json (CycloneDX); the engine it loads is in deploy/embedded/engine/pins.txt
	go run github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.10.0 bin -json -output bin/sbom.json bin/marketlog

clean: ## Remove what was built; what lies under data/ stays
	rm -rf bin tools/node_modules

kafka:
	tools/kafka/fetch.sh

contract:
	tools/contract/fetch.sh

mcp:
	tools/mcp/fetch.sh

promtool:
	tools/promtool/fetch.sh

rules: promtool ## Check the alerts and run their unit tests, by Prometheus' own promtool
	go test -run '^TestAlerts|^TestEveryAlert' -count 1 -v ./deploy/e2e

$(BUF): tools/package.json tools/package-lock.json
	cd tools && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
	touch $@

.PHONY: help build engine run live test slow gate nightly check generate bench figures admission chaos damages disturb formats seeds soak fuzz sbom clean kafka contract mcp promtool rules
