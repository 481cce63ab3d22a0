#!/usr/bin/env bash
# Runs the tests of all modules. It requires bin/devcluster and bin/einmal; "make test" and "make test-all" build them first.
set -euo pipefail
cd "$(dirname "$0")/.."
source tools/steps.sh

usage() {
	cat <<END
Usage: tools/test.sh [--all]

Runs the tests of all modules, except those that tools/long-tests.txt lists.

With --all, it runs all tests. It uses the race detector and a random order, but not for explorations and large tests: the race detector makes
those much slower.
END
}

# The module uses the versions of the workspace ("go work sync"), so this compiles only packages that the tests need anyway.
library_alone() {
	GOWORK=off go build ./...
}

# Terraform is optional. Without it, terraform.sh prints a clear notice about what is not tested.
optional_terraform() {
	tools/terraform.sh || (($? == 3))
}

# long_tests prints one regular expression for the tests in long-tests.txt.
long_tests() {
	printf '^(%s)$' "$(grep -v '^#' tools/long-tests.txt | paste -sd '|')"
}

# in_workspace prints the packages of all modules but devcluster, the slowest packages first.
in_workspace() {
	echo . ./cmd/einmal ./operators/tenant/...
	modules | grep -vx devcluster | sed 's|.*|./&/...|'
}

# packages_with PATTERN prints the packages that have tests with such a name: go test would link the tests of all others too.
packages_with() {
	git ls-files -z '*_test.go' | xargs -0 grep -lE "^func $1" | xargs dirname | sort -u | sed 's|^[^.]|./&|'
}

# Without vet, in all steps: "make check" runs it.
quick() {
	local skip
	skip=$(long_tests)
	# go test starts the packages in this order, as many at a time as there are processors.
	step "tests of the modules in the workspace" go test -vet=off -count=1 -timeout 20m -skip "$skip" $workspace
	step "tests of devcluster" in_module devcluster go test -vet=off -count=1 -timeout 20m -skip "$skip" ./...
}

all() {
	local large='(TestWhateverGoesWrong|TestTenThousand)' with_large
	with_large=$(packages_with "$large")
	step "terraform for a test of operators/tenant" optional_terraform
	step "tests of the modules in the workspace" go test -vet=off -race -shuffle=on -timeout 55m -skip '^TestWhateverGoesWrong' $workspace
	step "tests of devcluster" in_module devcluster go test -vet=off -race -shuffle=on -timeout 55m ./...
	# An exploration runs a scenario hundreds of times, so only one uses the race detector.
	step "one exploration with the race detector" \
		go test -vet=off -count=1 -race -timeout 40m -run '^TestWhateverGoesWrongTheEndIsTheSame$/^record_in_the_status$' .
	step "explorations and large tests without the race detector" \
		go test -vet=off -count=1 -timeout 40m -run "^$large" -skip '^TestWhateverGoesWrongTheEndIsTheSame$/^record_in_the_status$' $with_large
}

case ${1:-} in
-h | --help) usage && exit ;;
'') tests=quick ;;
--all) tests=all ;;
*) printf 'test.sh: unknown argument %s; see tools/test.sh --help\n' "$1" >&2 && exit 2 ;;
esac
# Assigned before the steps, so that a failure to list the packages ends the script.
workspace=$(in_workspace)
step "build of the library without the workspace" library_alone
step "servers for the tests of operators/tenant" tools/servers.sh
$tests
finish
