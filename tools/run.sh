#!/usr/bin/env bash
# Usage: tools/run.sh OPERATOR [simulated | real]
# Runs an operator in a local control plane, with its samples applied and with the servers that it needs. "make run" calls it. With real, Pods
# are containers, and an operator with node/run.sh runs in Pods too. The operator database always has a real node.
set -euo pipefail
cd "$(dirname "$0")/.."

die() {
	printf 'run.sh: %s\n' "$*" >&2
	exit 1
}

operator=${1:?missing argument OPERATOR; usage: tools/run.sh OPERATOR [simulated | real]}
[[ -d operators/$operator ]] || die "unknown operator $operator; OPERATOR is one of: $(cd operators && echo *)"
dev=(bin/einmal dev)
node=${2:-simulated}
# A simulated node runs no database.
[[ $operator != database ]] || node=real
case $node in
simulated) ;;
real)
	[[ ! -x operators/$operator/node/run.sh ]] || exec "operators/$operator/node/run.sh"
	dev+=(--node=real)
	;;
*) die "unknown kind of node $node; NODE is simulated or real" ;;
esac
if [[ -d operators/$operator/local ]]; then
	found=$(tools/servers.sh)
	while read -r line; do export "${line?}"; done <<<"$found"
	echo "Building bin/$operator-servers"
	go build -o "bin/$operator-servers" "./operators/$operator/local"
	dev=("bin/$operator-servers" ".servers/$operator" "${dev[@]}" --apply ".servers/$operator/manifests")
fi
echo "Starting a control plane and operators/$operator, then applying its samples."
exec "${dev[@]}" --apply "operators/$operator/config/samples" "operators/$operator"
