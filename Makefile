SHELL := /bin/bash
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

# The operator that "make run" starts.
OPERATOR ?= volumeclaim

# The linker sets the version, so that a new commit alone does not recompile any package.
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
export GOFLAGS := $(GOFLAGS) -buildvcs=false

GOLANGCI_LINT_VERSION := v2.15.0
GOLANGCI_LINT := bin/golangci-lint-$(GOLANGCI_LINT_VERSION)

.PHONY: help build run test test-all mutate check lint generate einmal

help: ## list the targets
	@echo "Usage: make TARGET [OPERATOR=$(OPERATOR)]"
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  \1\t\2/p' $(MAKEFILE_LIST) | expand -t 14

build: bin/devcluster einmal ## build bin/devcluster (a real control plane) and bin/einmal (the command-line tool)
	@echo "Built bin/devcluster and bin/einmal. Next: make run"

run: build ## run OPERATOR in a local control plane, with its servers and its samples applied; Ctrl-C stops everything
	@tools/run.sh $(OPERATOR)

test: build ## run the tests of all modules, except long ones (tools/long-tests.txt)
	@tools/test.sh

test-all: build ## run all tests of all modules, with the race detector where possible
	@tools/test.sh --all

mutate: ## run all mutation tests: inject each known bug and check that a test catches it
	go test -timeout 60m -v -run '^TestMutantsAreKilled$$' . -mutate

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
