#!/usr/bin/env bash
# Writes every generated file below the given folder (the repository, if none is given), under the path that the file
# has in the repository: deep copies and CRDs of each operator's API, and its roles; of an example, its roles.
set -euo pipefail
cd "$(dirname "$0")/.."
out=$(realpath "${1:-.}")

shopt -s nullglob # An operator of one file has no API package.
for operator in operators/*/ examples/*/; do
	operator=${operator%/}
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
