#!/usr/bin/env bash
# Runs the linters in all modules. The argument is the path of golangci-lint; "make lint" installs it first.
set -euo pipefail
cd "$(dirname "$0")/.."
source tools/steps.sh
lint=$(realpath "$1")

for module in $(modules); do
	step "lint of $module" in_module "$module" "$lint" run ./...
done
finish
