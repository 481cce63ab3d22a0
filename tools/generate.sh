#!/usr/bin/env bash
# Usage: tools/generate.sh [DIR]
# Writes all generated files below DIR, under their paths in the repository. The default is the repository itself. The
# files are the deep copies, CRDs and roles of each operator, and the roles of each example with manifests.
set -euo pipefail
cd "$(dirname "$0")/.."
out=$(realpath "${1:-.}")

shopt -s nullglob # A single-file operator has no API package.
for config in operators/*/config/ examples/*/config/; do
	operator=${config%/config/}
	name=$(basename "$operator")
	mkdir -p "$out/$operator/config/rbac"
	{
		echo "# Written by make generate: the roles that the handlers need, as \"$name rbac --roles-only\" prints them."
		(cd "$operator" && go run . rbac --roles-only --name "$name" --state-namespace "$name-system")
	} >"$out/$operator/config/rbac/roles.yaml"
	for api in "$operator"/api/*/; do
		api=${api%/}
		mkdir -p "$out/$api" "$out/$operator/config/crd"
		(
			cd "$operator"
			paths="paths=./${api#"$operator"/}"
			go tool controller-gen object "$paths" "output:object:dir=$out/$api"
			go tool controller-gen crd "$paths" "output:crd:dir=$out/$operator/config/crd"
		)
	done
done
