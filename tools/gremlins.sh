#!/usr/bin/env bash
# Changes the code of internal/core/journal in each way that gremlins knows, and runs its tests. Fails unless they notice 90 of 100 changes. The argument is the
# path of gremlins; "make gremlins" installs it first. The changes are made in a copy.
set -euo pipefail
cd "$(dirname "$0")/.."
gremlins=$(realpath "$1")
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
git ls-files -z --cached --others --exclude-standard | xargs -0 cp --parents -t "$copy"
cd "$copy"
# One at a time: a test that waits for the processor would count as one that hangs, and that as one that has noticed.
"$gremlins" unleash ./internal/core/journal --workers 1 --timeout-coefficient 20 --threshold-efficacy 90
