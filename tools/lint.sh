#!/usr/bin/env bash
# Runs the linters in all modules. The argument is the path of golangci-lint; "make lint" installs it first.
set -euo pipefail
cd "$(dirname "$0")/.."
source tools/steps.sh
lint=$(realpath "$1")

# lint_in MODULE runs the linters in a module. For devcluster it uses the compiler flags of build.sh: with other flags, all of
# Kubernetes would be compiled again.
lint_in() {
	local flags=${GOFLAGS:-}
	[[ $1 != devcluster ]] || flags+=" $(devcluster/build.sh --compiler-flags)"
	GOFLAGS=$flags in_module "$1" "$lint" run ./...
}

for module in $(modules); do
	step "lint of $module" lint_in "$module"
done
finish
