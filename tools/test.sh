#!/usr/bin/env bash
# Runs parts of the tests. The targets of the Makefile build bin/devcluster first where a part needs it.
set -euo pipefail
cd "$(dirname "$0")/.."
source tools/steps.sh
source tools/control-plane.sh

readonly parts_file=tools/test-parts.txt
# With -trimpath, tests do not know where this repository is.
export EINMAL_DEVCLUSTER=${EINMAL_DEVCLUSTER:-$PWD/bin/devcluster}

usage() {
	cat <<END
Usage: tools/test.sh PART...

Runs parts of the tests. $parts_file says which test belongs to which part.

Parts of "make test":
  fast           all modules, without a control plane; most tests run in virtual time
  race-quick     with the race detector: the packages with the most concurrency, and some tests in virtual time
  real           on real control planes
  explore-quick  explorations: a crash before and after each write and effect, and a sample of the other faults
  node-quick     a database as a Pod on a real node of devcluster; needs Linux and root, and installs containerd with apt-get. On a machine that
                 cannot run a real node, it prints why

Parts of "make test-all":
  race           all tests except those of the parts below, with the race detector and in random order
  explore        explorations, with another sample of faults each time; EINMALTEST_SEED=N repeats a sample
  mutate         injects each known bug and checks that a test catches it
  soak           large numbers, 200 kills, 50 switchovers, outages, hostile tenants, and a random fortieth of all schedules of explorations;
                 EINMALTEST_ALL=K/N plays another share, EINMALTEST_ALL=1 all of them
  field          on a real control plane: situations from public bug reports about other operators
  node           Pods as containers on real nodes of devcluster; needs Linux and root, and installs containerd with apt-get
  terraform      "terraform apply" of a Tenant; prints a notice if terraform is not available

Tests of "real" share a control plane, which the script starts. If the environment variable EINMAL_TEST_KUBECONFIG names the kubeconfig of a
devcluster, they use that one.

With the environment variable GOTESTSUM, the path of gotestsum, it ends with the seconds of each package and the slowest tests.
END
}

# tests_of PART... prints one regular expression for the tests of parts.
tests_of() {
	local part
	for part; do awk -v part="$part" '$1 == part { print $2 }' "$parts_file"; done | paste -sd '|' | sed 's/.*/^(&)$/'
}

# packages_of PART... prints the packages in the workspace that have a test of parts, those of operators first, which are the slowest. Go would
# link the tests of the others too.
packages_of() {
	git ls-files -z '*_test.go' ':!devcluster' | xargs -0 grep -lE "^func $(tests_of "$@" | tr -d '^$')\(" |
		xargs -n1 dirname | sort -ru | sed 's|^[^.]|./&|'
}

# in_workspace prints the packages of all modules but devcluster, the slowest first: Go starts them in this order, as many at a time as there
# are processors.
in_workspace() {
	echo ./operators/database ./test/... ./operators/tenant/... ./internal/... ./credential/... ./einmaltest/... ./examples/... .
	modules | grep -vxF -e devcluster -e . | sed 's|.*|./&/...|'
}

# fast_packages prints the packages in the workspace that have a test of the part fast. Go would link the tests of the others too.
fast_packages() {
	local tested
	tested=$(git ls-files -z '*_test.go' ':!devcluster' | xargs -0 grep -HoE '^func (Test|Example|Fuzz)[A-Za-z0-9_]*' |
		awk -F '(/[^/]*)?:func ' -v elsewhere="$elsewhere" -v root="$PWD" '$2 != "TestMain" && $2 !~ elsewhere { print ($1 ~ /[.]go$/ ? root : root "/" $1) }' | sort -u)
	go list -f '{{.ImportPath}} {{.Dir}}' $(in_workspace) | awk -v tested="$tested" '
		BEGIN { split(tested, folders, "\n"); for (i in folders) known[folders[i]] = 1 }
		known[$2] { print $1 }'
}

# run_tests TITLE MODULE FLAG... runs tests in the folder of a module. "make check" runs vet. Without information for debuggers, Go links them in less time.
run_tests() {
	local title=$1 module=$2
	shift 2
	local test=(go test)
	if [[ -n ${GOTESTSUM:-} ]]; then test=("$GOTESTSUM" --format-hide-empty-pkg --jsonfile "$events/$((++runs))" --); fi
	step "$title" in_module "$module" "${test[@]}" -vet=off -ldflags=-w -count=1 "$@"
}

# The functions of the parts assign lists before the steps, so that a failure to make a list ends the script.

# Packages that start PostgreSQL and Redis, but no control plane.
readonly servers=(./operators/tenant/{postgres,redis,servers,witness})

fast() {
	local without packages
	without=$(go list "${servers[@]}")
	packages=$(fast_packages | grep -vxF "$without")
	step "fast: PostgreSQL and Redis" tools/servers.sh # The tests of awslab and of ElastiCache users start Redis.
	# A test that starts a control plane fails, and prints this text.
	EINMAL_DEVCLUSTER="no control plane in this part: list the test in $parts_file" \
		run_tests "fast: the workspace" . -timeout 10m -skip "$elsewhere" $packages
	run_tests "fast: devcluster" devcluster -timeout 10m -skip "$elsewhere" ./...
}

race_quick() {
	local tests packages
	tests=$(tests_of race-quick) packages=$(packages_of race-quick)
	step "race-quick: PostgreSQL and Redis" tools/servers.sh
	run_tests "race-quick: packages" . -race -timeout 10m -skip "$elsewhere" ./internal/engine ./internal/edge/kube ./credential "${servers[@]}"
	EINMALTEST_QUICK=1 run_tests "race-quick: tests in virtual time" . -race -timeout 10m -run "$tests" $packages
}

real() {
	local tests packages
	tests=$(tests_of real) packages=$(packages_of real)
	step "real: PostgreSQL and Redis" tools/servers.sh
	step "real: the control plane that tests share" share_control_plane
	run_tests "real: the workspace" . -timeout 15m -run "$tests" $packages
	run_tests "real: devcluster" devcluster -timeout 10m -run "$tests" ./internal/acceptance
}

explore_quick() {
	local tests packages
	tests=$(tests_of explore-quick) packages=$(packages_of explore-quick)
	EINMALTEST_QUICK=1 EINMALTEST_SEED=1 run_tests "explore-quick: with seed 1" . -timeout 15m -run "$tests" $packages
}

node_quick() {
	local tests packages cannot
	tests=$(tests_of node-quick) packages=$(packages_of node-quick)
	if [[ $(uname) == Linux && $EUID == 0 ]]; then step "node-quick: containerd" tools/containerd.sh; fi
	cannot=$(tools/node-probe.sh | grep ' no: ' | grep -v '^lower the OOM score' || :)
	if [[ -n $cannot ]]; then
		step "node-quick: not run, because this machine cannot run a real node" echo "$cannot"
		return
	fi
	run_tests "node-quick: the workspace" . -timeout 10m -run "$tests" $packages
}

race() {
	step "race: PostgreSQL and Redis" tools/servers.sh
	local long
	long=$(tests_of explore-quick node-quick explore mutate soak field node terraform)
	run_tests "race: the workspace" . -race -shuffle=on -timeout 45m -skip "$long" $(in_workspace)
	run_tests "race: devcluster" devcluster -race -shuffle=on -timeout 10m -skip "$long" ./...
}

explore() {
	local seed=${EINMALTEST_SEED:-$RANDOM} tests packages
	tests=$(tests_of explore-quick explore) packages=$(packages_of explore-quick explore)
	step "explore: PostgreSQL and Redis" tools/servers.sh
	EINMALTEST_SEED=$seed run_tests "explore: with seed $seed" . -timeout 180m -run "$tests" $packages
}

mutate() {
	local tests packages
	tests=$(tests_of mutate) packages=$(packages_of mutate)
	run_tests "mutate" . -timeout 25m -run "$tests" $packages
}

soak() {
	local share=${EINMALTEST_ALL:-$((RANDOM % 40 + 1))/40} tests packages explorations explored
	tests=$(tests_of soak) packages=$(packages_of soak)
	explorations=$(tests_of explore-quick) explored=$(packages_of explore-quick)
	step "soak: PostgreSQL and Redis" tools/servers.sh
	run_tests "soak: large numbers, outages and hostile tenants" . -timeout 25m -run "$tests" $packages
	EINMAL_KILLS=200 run_tests "soak: 200 kills" . -timeout 25m -run '^TestAKilledOperatorEndsTheSame$' ./operators/tenant
	step "soak: containerd" tools/containerd.sh
	EINMAL_SWITCHOVERS=50 run_tests "soak: 50 switchovers" . -timeout 40m -run '^TestNodeSwitchesOver$' ./operators/database/node
	EINMALTEST_ALL=$share run_tests "soak: share $share of all schedules" . -timeout 60m -run "$explorations" $explored
}

node() {
	local tests packages
	tests=$(tests_of node) packages=$(packages_of node)
	step "node: containerd" tools/containerd.sh
	run_tests "node: devcluster" devcluster -timeout 15m -run "$tests" ./internal/acceptance
	run_tests "node: operators" . -timeout 50m -run "$tests" $packages
}

field() {
	local tests packages
	tests=$(tests_of field) packages=$(packages_of field)
	run_tests "field" . -timeout 15m -run "$tests" $packages
}

terraform() {
	local tests packages
	tests=$(tests_of terraform) packages=$(packages_of terraform)
	# Without terraform, the script prints a notice and exits with 3.
	step "terraform: terraform and its provider" eval 'tools/terraform.sh || (($? == 3))'
	step "terraform: PostgreSQL and Redis" tools/servers.sh
	run_tests "terraform" . -timeout 25m -run "$tests" $packages
}

# report_time prints the seconds of each package and the slowest tests.
report_time() {
	printf '\n== Seconds of each package\n'
	sed -nE 's/.*"Action":"(pass|fail)","Package":"([^"]*)","Elapsed":([0-9.]+).*/\3\t\2/p' "$events"/* | sort -rn | awk '$1 >= 1'
	printf '\n== The slowest tests\n'
	cat "$events"/* | "$GOTESTSUM" tool slowest --num 30
	rm -r "$events"
}

parts=()
for argument; do
	case $argument in
	-h | --help) usage && exit ;;
	fast | race-quick | real | explore-quick | node-quick | race | explore | mutate | soak | field | node | terraform) parts+=("${argument//-/_}") ;;
	*) printf 'test.sh: unknown part %s; see tools/test.sh --help\n' "$argument" >&2 && exit 2 ;;
	esac
done
((${#parts[@]})) || { usage >&2 && exit 2; }
elsewhere=$(tests_of real race explore-quick node-quick explore mutate soak field node terraform)
if [[ -n ${GOTESTSUM:-} ]]; then GOTESTSUM=$PWD/$GOTESTSUM events=$(mktemp -d) runs=0; fi
for part in "${parts[@]}"; do $part; done
if [[ -n ${GOTESTSUM:-} ]]; then report_time; fi
finish
