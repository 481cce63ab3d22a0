#!/usr/bin/env bash
# Runs all checks except the tests and the linters: format, module files, go vet, generated files, documentation, and the
# list of test parts.
set -euo pipefail
cd "$(dirname "$0")/.."
source tools/steps.sh

formatted() {
	local unformatted
	unformatted=$(git ls-files '*.go' | xargs --no-run-if-empty gofmt -l) || return
	[[ -z $unformatted ]] && return
	printf 'these files are not formatted; run gofmt -w:\n%s\n' "$unformatted"
	return 1
}

# generated writes the generated files to a temporary directory and compares them with those in the repository.
generated() {
	local fresh file result=0
	fresh=$(mktemp -d)
	tools/generate.sh "$fresh" || result=1
	while read -r file; do
		diff -u "$file" "$fresh/$file" || result=1
	done < <(cd "$fresh" && find . -type f)
	rm -rf "$fresh"
	((result == 0)) || echo "generated files are outdated; run make generate"
	return $result
}

# versions_agree compares the versions of the modules that the library and its tests import, with and without the workspace. If they differ, the
# build without the workspace compiles nearly everything again.
versions_agree() {
	local alone together
	alone=$(versions off) && together=$(versions "$PWD/go.work") || return
	diff <(echo "$alone") <(echo "$together") && return
	echo "run go get in the folder of the library for the modules above, with the versions of the workspace (>)"
	return 1
}

# versions WORKSPACE prints the modules that the library and its tests import.
versions() { GOWORK=$1 go list -deps -test -f '{{with .Module}}{{.Path}} {{.Version}}{{end}}' ./... | sort -u; }

step "format" formatted
for module in $(modules); do
	step "module file of $module is tidy" env GOWORK=off go -C "$module" mod tidy -diff
done
# Its users have no workspace.
step "the library alone has the dependencies of the workspace" versions_agree
step "build of the library without the workspace" env GOWORK=off go build ./...
for module in $(modules | grep -vxF devcluster); do # See docs/decisions/0036.
	step "vet of $module" in_module "$module" go vet ./...
done
step "tests of the benchmark" in_module bench go test ./...
step "generated files are up to date" generated
step "documentation: links, quotations and language" go run ./tools/docs .
step "parts of the tests and their budgets" go run ./tools/testparts -check
finish
