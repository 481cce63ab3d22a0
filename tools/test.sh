#!/usr/bin/env bash
# Runs the tests of all modules. It requires bin/devcluster and bin/einmal; "make test" and "make test-all" build them first.
set -euo pipefail
cd "$(dirname "$0")/.."
source tools/steps.sh

usage() {
	cat <<END
Usage: tools/test.sh [--all]

Runs the tests of all modules, except those that tools/long-tests.txt lists. Most tests that need a control plane share one, which the script
starts; if EINMAL_TEST_KUBECONFIG names the kubeconfig of a devcluster, they use that one.

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

# shared_cluster starts the control plane that tests share, unless EINMAL_TEST_KUBECONFIG names one. The control plane ends with this script, also
# when the script is killed: it exits when its standard input ends.
shared_cluster() {
	[[ -z ${EINMAL_TEST_KUBECONFIG:-} ]] || return 0
	local line
	cluster_folder=$(mktemp -d)
	trap end_shared_cluster EXIT
	coproc cluster { exec "${EINMAL_DEVCLUSTER:-bin/devcluster}" up --data "$cluster_folder/data" --exit-with-fd 0 2>"$cluster_folder/log"; }
	cluster_pid=$! # Bash unsets its own variable when the process ends.
	while read -r line <&"${cluster[0]}"; do
		echo "$line"
		[[ $line == 'export KUBECONFIG='* ]] || continue
		export EINMAL_TEST_KUBECONFIG=$cluster_folder/data/kubeconfig
		return 0
	done
	cat "$cluster_folder/log"
	echo "the control plane ended before it was ready; each test starts its own"
	return 1
}

end_shared_cluster() {
	kill "$cluster_pid" 2>/dev/null || true
	wait "$cluster_pid" || true
	rm -rf "$cluster_folder"
}

# Without vet, in all steps: "make check" runs it.
quick() {
	local skip
	skip=$(long_tests)
	step "control plane that tests share" shared_cluster
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
