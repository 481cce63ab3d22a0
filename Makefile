SHELL := /bin/bash
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

# The operator that "make run" starts.
OPERATOR ?= volumeclaim

# The version is stamped by the linker, so that a commit alone rebuilds nothing.
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
export GOFLAGS := $(GOFLAGS) -buildvcs=false

GOLANGCI_LINT_VERSION := v2.15.0
GOLANGCI_LINT := bin/golangci-lint-$(GOLANGCI_LINT_VERSION)

.PHONY: help build run test test-all mutate check lint generate einmal

help: ## say what there is to make
	@echo "Usage: make TARGET [OPERATOR=$(OPERATOR)]"
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  \1\t\2/p' $(MAKEFILE_LIST) | expand -t 14

build: bin/devcluster einmal ## build bin/devcluster (a real control plane) and bin/einmal (the command-line tool)
	@echo "Built bin/devcluster and bin/einmal. Next: make run"

run: build ## start a control plane and the OPERATOR on it, with the servers that it needs and its samples applied; Ctrl-C stops all
	@tools/run.sh $(OPERATOR)

test: build ## run the tests of all modules, except long ones (tools/long-tests.txt)
	@tools/test.sh

test-all: build ## run all tests of all modules, with the race detector where possible
	@tools/test.sh --all

mutate: ## run all mutation tests: inject each known bug and check that a test catches it
	go test -timeout 60m -v -run '^TestMutantsAreKilled$$' . -mutate

check: ## check format, module files, generated files and documentation
	@tools/check.sh

lint: $(GOLANGCI_LINT) ## run the linters on all modules; the first run builds golangci-lint
	@tools/lint.sh $(GOLANGCI_LINT)

generate: ## write deep copies, CRDs and the quotations in the documentation
	tools/generate.sh
	go run ./tools/docs -write .

einmal:
	@echo "Building bin/einmal $(VERSION)"
	@go build -ldflags "-X main.version=$(VERSION)" -o bin/einmal ./cmd/einmal

# The control plane is built with its own progress lines; the first build takes minutes, later ones seconds.
bin/devcluster: $(shell find devcluster -name '*.go' -o -name 'go.*' -o -name build.sh)
	@devcluster/build.sh $@
	@touch $@

# Installed by version and outside of the workspace: its module graph is better not shared with ours.
$(GOLANGCI_LINT):
	@echo "Building golangci-lint $(GOLANGCI_LINT_VERSION): about two minutes, once"
	@GOBIN=$(CURDIR)/bin GOWORK=off go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_LINT_VERSION)
	@mv bin/golangci-lint $@
