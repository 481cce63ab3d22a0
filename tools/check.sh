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

# Without this check, a test that is renamed would run in another part.
listed_tests_exist() {
	local part pattern result=0
	while read -r part pattern; do
		git grep -qE "^func $pattern\(" -- '*_test.go' && continue
		echo "tools/test-parts.txt: no test matches $pattern; remove the line or correct the name"
		result=1
	done < <(grep '^[^#]' tools/test-parts.txt)
	return $result
}

step "format" formatted
for module in $(modules); do
	step "module file of $module is tidy" env GOWORK=off go -C "$module" mod tidy -diff
done
# Its users have no workspace.
step "build of the library without the workspace" env GOWORK=off go build ./...
for module in $(modules); do
	step "vet of $module" in_module "$module" go vet ./...
done
step "generated files are up to date" generated
step "documentation: links, quotations and language" go run ./tools/docs .
step "tests in tools/test-parts.txt exist" listed_tests_exist
finish
