#!/usr/bin/env bash
# Runs the tenant operator as a Deployment on a real node of devcluster, with PostgreSQL and Redis as Pods.
set -euo pipefail
cd "$(dirname "$0")/../../.."

usage() {
	cat <<END
Usage: operators/tenant/node/run.sh [DIR]

Starts a devcluster with a real node and the data directory DIR (default .servers/tenant-node), builds the images of the operator, PostgreSQL and
Redis, applies operators/tenant/node and the samples, waits until the tenant is ready, and runs until Ctrl-C. "make run OPERATOR=tenant
NODE=real" calls it. It needs root and Linux; see docs/devcluster.md.

EINMAL_DEVCLUSTER names another devcluster than bin/devcluster.
END
}

data=.servers/tenant-node
case ${1:-} in
'') ;;
-h | --help)
	usage
	exit
	;;
-*)
	usage >&2
	exit 2
	;;
*) data=$1 ;;
esac

readonly devcluster=${EINMAL_DEVCLUSTER:-bin/devcluster}
readonly wait=180s
readonly unneeded='libllvm*,libz3*,*perl*,locales,libc-l10n,adduser,debconf,dpkg,passwd,ucf,postgresql-common*'

kubectl() { "$devcluster" kubectl --data "$data" "$@"; }
image() { "$devcluster" image build --data "$data" "$@"; }

# secret NAMESPACE NAME KEY=VALUE… creates a Secret from standard input, so that no password is in the list of processes.
secret() {
	local namespace=$1 name=$2
	shift 2
	kubectl create secret generic --namespace "$namespace" "$name" --from-env-file=<(printf '%s\n' "$@")
}

# passwords creates the Secrets of the servers' administrators, at the first start only.
passwords() {
	kubectl get --namespace tenant-system secret redis-admin >/dev/null 2>&1 && return
	local postgres redis
	postgres=$(openssl rand -hex 16) redis=$(openssl rand -hex 16)
	secret databases postgres-admin "password=$postgres"
	secret databases redis-admin "password=$redis"
	secret tenant-system postgres-admin "dsn=postgres://tenants:$postgres@postgres.databases:5432/postgres?sslmode=disable"
	secret tenant-system redis-admin "username=tenants" "password=$redis"
}

namespaces() {
	local name
	for name in databases apps tenant-system; do
		kubectl get namespace "$name" >/dev/null 2>&1 || kubectl create namespace "$name"
	done
}

# The pipe to its standard input ends with this script, and devcluster with the pipe.
coproc up { exec "$devcluster" up --node=real --data "$data" --exit-with-fd 0; }
readonly started=$up_PID
stop() {
	exec {up[1]}>&- || :
	wait "$started" || :
}
trap stop EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
read -r ready <&"${up[0]}"

echo "Building the images of the operator, PostgreSQL and Redis"
work=$(mktemp -d)
trap 'rm -rf "$work"; stop' EXIT
CGO_ENABLED=0 go build -o "$work/tenant" ./operators/tenant
image tenant:dev --program "$work/tenant" --user 65532
image tenant-postgres:dev --debian bookworm postgresql-15 coreutils dash --exclude "$unneeded" --user postgres:999 \
	--env PATH=/usr/lib/postgresql/15/bin:/usr/bin
image tenant-redis:dev --debian bookworm redis-server coreutils dash --exclude "$unneeded" --user redis:999

echo "Applying operators/tenant/node"
namespaces
passwords
kubectl apply --server-side --filename operators/tenant/config/crd
kubectl wait --for=condition=Established --timeout=$wait crd/tenants.tenant.einmal.dev crd/tenantbackends.tenant.einmal.dev
kubectl apply --server-side --kustomize operators/tenant/node
kubectl apply --server-side --filename operators/tenant/config/samples
kubectl rollout status --namespace tenant-system deployment/tenant --timeout=$wait
kubectl wait --for=condition=Ready --timeout=$wait tenant/acme
cat <<END
The tenant acme is ready. In another terminal:
  $devcluster kubectl --data $data get tenants,tenantbackends
  $devcluster kubectl --data $data logs --namespace tenant-system deployment/tenant
Ctrl-C stops everything and keeps the data.
END
wait "$started"
