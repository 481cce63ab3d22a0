#!/usr/bin/env bash
# Runs the tenant operator as a Deployment on a real node of devcluster, with PostgreSQL and Redis as Pods.
set -euo pipefail
cd "$(dirname "$0")/../../.."

usage() {
	cat <<END
Usage: operators/tenant/node/run.sh [DIR]

Starts a devcluster with a real node and the data directory DIR (default .servers/tenant-node), builds the images of the operator, PostgreSQL and
Redis, applies operators/tenant/node and the samples, waits until the tenant is ready, and runs until Ctrl-C. "make run OPERATOR=tenant
NODE=real" calls it. It needs root and Linux, and installs the packages of a real node with apt-get; see docs/devcluster.md.

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

source tools/node.sh

random() { head -c 16 /dev/urandom | od -An -tx1 | tr -d ' \n'; }

# secret NAMESPACE NAME KEY=VALUE… writes a Secret. No password is in the list of processes.
secret() {
	local namespace=$1 name=$2
	shift 2
	kubectl create secret generic --namespace "$namespace" "$name" --from-env-file=<(printf '%s\n' "$@") --dry-run=client --output yaml |
		kubectl apply --server-side --filename -
}

# password SERVER prints the password of a server's administrator. The first call creates it. A Secret that exists is never overwritten.
password() {
	local name=$1-admin found
	found=$(kubectl get secret --namespace databases "$name" --ignore-not-found --output name) || return
	if [[ -z $found ]]; then
		kubectl create secret generic --namespace databases "$name" --from-env-file=<(printf 'password=%s\n' "$(random)") >&2 || return
	fi
	kubectl get secret --namespace databases "$name" --output 'jsonpath={.data.password}' | base64 --decode
}

# administrators writes the Secrets with which the operator reaches the servers.
administrators() {
	local postgres redis
	postgres=$(password postgres)
	redis=$(password redis)
	secret tenant-system postgres-admin "dsn=postgres://tenants:$postgres@postgres.databases:5432/postgres?sslmode=disable"
	secret tenant-system redis-admin "username=tenants" "password=$redis"
}

start_node

echo "Building the images of the operator, PostgreSQL and Redis"
CGO_ENABLED=0 go build -o "$work/tenant" ./operators/tenant
image tenant:dev --program "$work/tenant" --user 65532
postgres_image tenant-postgres:dev 15
image tenant-redis:dev --debian bookworm redis-server coreutils dash --exclude "$unneeded" --user redis:999

echo "Applying operators/tenant/node"
namespaces databases apps tenant-system
administrators
kubectl apply --server-side --filename operators/tenant/config/crd
kubectl wait --for=condition=Established --timeout=$timeout crd/tenants.tenant.einmal.dev crd/tenantbackends.tenant.einmal.dev
kubectl apply --server-side --kustomize operators/tenant/node
samples operators/tenant/config/samples
kubectl rollout status --namespace tenant-system deployment/tenant --timeout=$timeout
kubectl wait --for=condition=Ready --timeout=$timeout tenant/acme
cat <<END
The tenant acme is ready. In another terminal:
  $devcluster kubectl --data $data get tenants,tenantbackends
  $devcluster kubectl --data $data logs --namespace tenant-system deployment/tenant
Ctrl-C stops everything and keeps the data.
END
await_end
