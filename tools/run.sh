#!/usr/bin/env bash
# Runs an operator as "make run" does: on a control plane, with its samples applied, and beside the servers that it needs.
set -euo pipefail
cd "$(dirname "$0")/.."

die() {
	printf 'run.sh: %s\n' "$*" >&2
	exit 1
}

operator=${1:?say which operator: tools/run.sh OPERATOR}
[[ -d operators/$operator ]] || die "there is no operators/$operator; OPERATOR is one of: $(cd operators && echo *)"
dev=(bin/einmal dev)
if [[ -d operators/$operator/local ]]; then
	found=$(tools/servers.sh)
	while read -r line; do export "${line?}"; done <<<"$found"
	echo "Building bin/$operator-servers"
	go build -o "bin/$operator-servers" "./operators/$operator/local"
	dev=("bin/$operator-servers" ".servers/$operator" "${dev[@]}" --apply ".servers/$operator/manifests")
fi
echo "Starting a control plane and operators/$operator on it, then applying its samples."
exec "${dev[@]}" --apply "operators/$operator/config/samples" "operators/$operator"
