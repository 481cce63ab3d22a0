#!/usr/bin/env bash
# Checks everything but behaviour: format, module files, generated files, documentation, lint. Takes the path of
# golangci-lint; "make check" installs it first.
set -euo pipefail
cd "$(dirname "$0")/.."
source tools/steps.sh
lint=$(realpath "$1")

formatted() {
	local unformatted
	unformatted=$(git ls-files '*.go' | xargs --no-run-if-empty gofmt -l) || return
	[[ -z $unformatted ]] && return
	printf 'gofmt would change:\n%s\n' "$unformatted"
	return 1
}

# generated writes the generated files to a temporary folder and compares each with the one in the repository.
generated() {
	local fresh file result=0
	fresh=$(mktemp -d)
	tools/generate.sh "$fresh" || result=1
	while read -r file; do
		diff -u "$file" "$fresh/$file" || result=1
	done < <(cd "$fresh" && find . -type f)
	rm -rf "$fresh"
	((result == 0)) || echo "run make generate"
	return $result
}

# lint_in runs the linters in a module. Those of devcluster get the flags of its build: with others, all of Kubernetes would be compiled
# once more to lint a few files.
lint_in() {
	local flags=${GOFLAGS:-}
	[[ $1 != devcluster ]] || flags+=" $(devcluster/build.sh --compiler-flags)"
	GOFLAGS=$flags in_module "$1" "$lint" run ./...
}

step "format" formatted
for module in $(modules); do
	step "module file of $module is tidy" env GOWORK=off go -C "$module" mod tidy -diff
done
step "generated files are up to date" generated
step "documentation: links and quotations" go run ./tools/docs .
for module in $(modules); do
	step "lint of $module" lint_in "$module"
done
finish
