#!/usr/bin/env bash
# Runs the database operator as a Deployment on a real node of devcluster, with its databases as Pods.
set -euo pipefail
cd "$(dirname "$0")/../../.."

usage() {
	cat <<END
Usage: operators/database/node/run.sh [DIR]

Starts a devcluster with a real node and the data directory DIR (default .servers/database-node), builds the images of the operator and of
PostgreSQL, applies the operator and the samples, waits until the database is ready, and runs until Ctrl-C. "make run OPERATOR=database" calls it.
It needs root and Linux, and installs the packages of a real node with apt-get; see docs/devcluster.md.

EINMAL_DEVCLUSTER names another devcluster than bin/devcluster. EINMAL_POSTGRES_VERSIONS lists the versions of PostgreSQL to build images of: 15, 16, 16.13, 17, 18;
the samples run the first. The default is 16. For example, "15 17" needs no npm, which 16 does.

EINMAL_MARIADB=1 also builds an image of MariaDB 10.11, and runs the database shop-db with it.

EINMAL_S3=1 also runs an S3 server in memory, as the Pod s3 in the namespace production: http://s3:9000, with the bucket backups and the Secret s3.
END
}

data=.servers/database-node
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
start_node

echo "Building the images of the operator and PostgreSQL"
CGO_ENABLED=0 go build -o "$work/database" ./operators/database
image database:dev --program "$work/database" --user 65532
read -ra versions <<<"${EINMAL_POSTGRES_VERSIONS:-16}"
for version in "${versions[@]}"; do
	postgres_image "postgres:$version" "$version"
done
sed "s/version: \"16\"/version: \"${versions[0]}\"/" operators/database/config/samples/orders-db.yaml >"$work/orders-db.yaml"

echo "Applying operators/database/config"
kubectl apply --server-side --filename operators/database/config/crd
kubectl wait --for=condition=Established --timeout=$timeout crd/databases.database.einmal.dev
kubectl apply --server-side --kustomize operators/database/config
namespaces production
if [ -n "${EINMAL_S3:-}" ]; then
	CGO_ENABLED=0 go build -o "$work/s3server" ./operators/database/node/s3server
	image s3server:dev --program "$work/s3server" --user 65532
	kubectl apply --server-side --filename operators/database/node/testdata/s3.yaml
fi
samples "$work/orders-db.yaml"
databases=(database/orders-db)
if [ -n "${EINMAL_MARIADB:-}" ]; then
	databases+=(database/shop-db)
	mariadb_image mariadb:10.11
	samples operators/database/config/samples/shop-db.yaml
fi
kubectl rollout status --namespace database-system deployment/database --timeout=$timeout
kubectl wait --for=condition=Ready --timeout=$timeout --namespace production "${databases[@]}"
cat <<END
The database orders-db is ready. In another terminal:
  $devcluster kubectl --data $data get databases --namespace production --output wide
  $devcluster kubectl --data $data exec --namespace production orders-db-0 -- psql app
  $devcluster kubectl --data $data logs --namespace database-system deployment/database
From this machine, as the user of the apps:
  $devcluster kubectl --data $data port-forward --namespace production service/orders-db-rw 15432:5432 &
  PGPASSWORD=\$($devcluster kubectl --data $data get secret --namespace production orders-db-app \\
    --output 'jsonpath={.data.password}' | base64 --decode) psql --host localhost --port 15432 --username app app
To see it repaired:
  $devcluster kubectl --data $data delete pod --namespace production orders-db-0
END
if [ -n "${EINMAL_MARIADB:-}" ]; then
	cat <<END
In the database shop-db, with MariaDB:
  $devcluster kubectl --data $data exec --namespace production shop-db-0 -- mariadb app
END
fi
echo "Ctrl-C stops everything and keeps the data."
await_end
