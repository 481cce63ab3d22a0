SHELL := /bin/bash
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

# The operator that "make run" starts, and the kind of the node: simulated or real.
OPERATOR ?= volumeclaim
NODE ?= simulated

# The linker sets the version, so that a new commit alone does not recompile any package.
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
# Without -trimpath, Go would compile the packages of this repository again for each clone.
export GOFLAGS := $(GOFLAGS) -buildvcs=false -trimpath

GOLANGCI_LINT_VERSION := v2.15.0
GOLANGCI_LINT := bin/golangci-lint-$(GOLANGCI_LINT_VERSION)
GREMLINS_VERSION := v0.5.1
GREMLINS := bin/gremlins-$(GREMLINS_VERSION)

# The parts of the tests: see go run ./tools/testparts -help.
TESTPARTS := go run ./tools/testparts
SHORT := fast real explore-quick node-quick
LONG := race explore mutate soak field node terraform

.PHONY: help build run test test-ci test-all bench bench-large gremlins check lint generate einmal race-quick $(SHORT) $(LONG)

help: ## list the targets
	@echo "Usage: make TARGET [OPERATOR=$(OPERATOR)] [NODE=$(NODE)]"
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  \1\t\2/p' $(MAKEFILE_LIST) | expand -t 16

build: bin/devcluster einmal ## build bin/devcluster (a real control plane) and bin/einmal (the command-line tool)
	@echo "Built bin/devcluster and bin/einmal. Next: make run"

run: build ## run OPERATOR in a local control plane, with its servers and its samples applied; with NODE=real, Pods are containers; Ctrl-C stops everything
	@tools/run.sh $(OPERATOR) $(NODE)

test: build ## run the tests that every change must pass: fast, real, explore-quick and node-quick
	@$(TESTPARTS) $(SHORT)

test-ci: build ## run "make test" and race-quick
	@$(TESTPARTS) $(SHORT) race-quick

test-all: build ## run all other tests: race, explore, mutate, soak, field, node and terraform; then lint
	@$(TESTPARTS) -slowest 30 $(LONG)
	@$(MAKE) lint

fast: ## run the tests of all modules that need no control plane
race-quick: ## run some tests with the race detector
real: build ## run tests on real control planes
explore-quick: ## run explorations with few faults
node-quick: build ## run a database on a real node: Linux, root, containerd
race: build ## run all tests but those of the next five targets, with the race detector
explore: build ## run all explorations, with a random sample of faults
mutate: ## inject each known bug and check that a test catches it
soak: build ## run tests with large numbers, 200 kills, 50 switchovers, outages and hostile tenants, and a fortieth of all schedules of explorations
node: build ## run the tests of real nodes: Linux, root, containerd
field: build ## run situations from public bug reports on a real control plane
terraform: build ## run the test with terraform
$(SHORT) race-quick:
	@$(TESTPARTS) $@
$(LONG):
	@$(TESTPARTS) -slowest 30 $@

bench: build ## measure what an object costs, beside controller-runtime and a bare client; 2,000 objects, minutes; results in bin/bench
	@go run ./bench

bench-large: build ## ROW=rest|restart|one|steady|growth [OBJECTS=10000]: the same with many objects; docs/performance.md says how long each takes
	@go run ./bench -row $(or $(ROW),rest) -objects $(or $(OBJECTS),10000)

gremlins: $(GREMLINS) ## change internal/core/journal in many ways and check that its tests notice; five minutes
	@tools/gremlins.sh $(GREMLINS)

check: ## check format, module files, go vet, generated files and documentation
	@tools/check.sh

lint: $(GOLANGCI_LINT) ## run the linters on all modules; the first run builds golangci-lint
	@tools/lint.sh $(GOLANGCI_LINT)

generate: ## generate deep copies, CRDs, roles and the code quotations in the documentation
	tools/generate.sh
	go run ./tools/docs -write .

einmal:
	@echo "Building bin/einmal $(VERSION)"
	@go build -ldflags "-X main.version=$(VERSION)" -o bin/einmal ./cmd/einmal

# build.sh prints its own progress. The first build takes minutes, later ones take seconds.
bin/devcluster: $(shell find devcluster -name '*.go' -o -name 'go.*' -o -name build.sh)
	@devcluster/build.sh $@
	@touch $@

# Installed outside of the workspace, so that its dependencies do not affect ours.
$(GOLANGCI_LINT):
	@echo "Building golangci-lint $(GOLANGCI_LINT_VERSION); takes about two minutes, only the first time"
	@GOBIN=$(CURDIR)/bin GOWORK=off go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_LINT_VERSION)
	@mv bin/golangci-lint $@

$(GREMLINS):
	@GOBIN=$(CURDIR)/bin GOWORK=off go install github.com/go-gremlins/gremlins/cmd/gremlins@$(GREMLINS_VERSION)
	@mv bin/gremlins $@
