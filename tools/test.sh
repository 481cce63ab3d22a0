#!/usr/bin/env bash
# Runs every test of every module, with the race detector and in shuffled order. Expects bin/devcluster and bin/einmal:
# "make test" builds them first.
set -euo pipefail
cd "$(dirname "$0")/.."
source tools/steps.sh

# The versions are those of the workspace ("go work sync"), so that this compiles only what the tests need anyway.
library_alone() {
	GOWORK=off go build ./...
}

# Terraform is no part of what a machine needs. It says loudly what is not shown without it.
terraform_or_without() {
	tools/terraform.sh || (($? == 3))
}

step "the library alone, as its users get it" library_alone
step "servers for the tests of operators/tenant" tools/servers.sh
step "terraform for a test of operators/tenant" terraform_or_without
# Without vet: "make check" runs it on the same packages, and go test would examine all dependencies for it once more.
for module in $(modules); do
	step "tests of $module" in_module "$module" go test -vet=off -race -shuffle=on -timeout 40m -skip '^TestWhateverGoesWrong' ./...
done
# To explore a scenario is to play it some hundred times: with the race detector for one, and without it for the others.
step "one exploration with the race detector" \
	go test -vet=off -race -timeout 40m -run '^TestWhateverGoesWrongTheEndIsTheSame$/^record_in_the_status$' .
for module in . operators/*; do
	step "explorations, and what is too much for the race detector, in $module" in_module "$module" \
		go test -vet=off -timeout 40m -run '^(TestWhateverGoesWrong|TestTenThousand)' \
		-skip '^TestWhateverGoesWrongTheEndIsTheSame$/^record_in_the_status$' ./...
done
finish
