#!/bin/sh
# Usage: server.sh data | server
# The commands of the Pods of a Database. "data" creates the database, or checks the one that the volume holds. "server" runs it. Both need only
# the programs of PostgreSQL, flock and coreutils.
#
# The operator decides which Pod may accept writes: the annotation database.einmal.dev/grant of this very Pod says "UID TERM", where UID is its uid,
# and "UID TERM initdb" where an empty volume may become an empty database.
set -eu
umask 077

say() { printf '%s\n' "$*"; }

# fail REASON MESSAGE ends the container. The operator reads both in the status of the Pod.
fail() {
	say "$1: $2" >&2
	printf '%s' "$1: $2" >/dev/termination-log
	exit 1
}

# grant prints the term and what else the operator says of this Pod, or nothing.
grant() {
	while IFS= read -r line; do
		case $line in
		"database.einmal.dev/grant=\"$POD_UID "*)
			line=${line#*"$POD_UID "}
			say "${line%\"}"
			return
			;;
		esac
	done </pod/annotations
}

# await_grant waits until the operator permits this Pod to accept writes.
await_grant() {
	granted=$(grant)
	[ -n "$granted" ] || say 'waiting until the operator permits this Pod to accept writes'
	while [ -z "$granted" ]; do
		sleep 0.2
		granted=$(grant)
	done
	say "permitted with term $granted"
}

# lock keeps a second Pod from using the volume. The files of PostgreSQL do not, because processes in containers can have equal IDs.
lock() {
	[ -w /data ] || fail VolumeNotWritable "user $(id -u) cannot write to the volume"
	exec 9>>/data/lock
	flock -w 30 9 || fail VolumeInUse 'another Pod uses the volume'
}

# password NAME prints the password of a Secret.
password() {
	[ -s "/secret/$1" ] || fail CredentialsMissing "the Secret with the password of $1 for the new database does not exist"
	text=$(cat "/secret/$1")
	case $text in
	*[!A-Za-z0-9]*) fail CredentialsInvalid "the password of $1 for the new database must consist of letters and digits" ;;
	esac
	say "$text"
}

# create makes the database under another name, so that one that is not complete is never used.
create() {
	app=$(password app)
	monitor=$(password monitor)
	say 'creating the database'
	rm -rf "$PGDATA.new"
	initdb --pgdata "$PGDATA.new" --username postgres --data-checksums --encoding UTF8 --locale C.UTF-8 --auth-local peer --auth-host reject \
		--no-instructions >/tmp/initdb.log 2>&1 || {
		cat /tmp/initdb.log
		fail CreationFailed 'initdb failed; see the log of the container data'
	}
	# Until it is complete, the server is reachable by its socket only. A statement with the password must not be logged, even if it fails.
	pg_ctl --pgdata "$PGDATA.new" --wait --silent --log /tmp/create.log start \
		--options "-c listen_addresses='' -c unix_socket_directories=$PGHOST -c password_encryption=scram-sha-256 -c log_min_error_statement=panic" || {
		cat /tmp/create.log
		fail CreationFailed 'the server for the new database did not start; see the log of the container data'
	}
	psql --no-psqlrc --quiet --set ON_ERROR_STOP=1 --set VERBOSITY=terse --dbname postgres >/tmp/create-roles.log 2>&1 <<-SQL ||
		create role "$APP_USERNAME" login password '$app';
		create database "$APP_DATABASE" owner "$APP_USERNAME";
		create role einmal_monitor login password '$monitor' connection limit 4;
		create schema einmal;
		create function einmal.volume() returns text language sql security definer set search_path = pg_catalog, pg_temp
			as 'select pg_read_file(''/run/postgresql/volume'')';
		create function einmal.refused_parameters() returns text language sql security definer set search_path = pg_catalog, pg_temp
			as \$\$select coalesce(string_agg(name || ': ' || error, '; '), '') from pg_file_settings left join pg_settings using (name)
				where error is not null and pending_restart is not true\$\$;
		revoke all on function einmal.volume(), einmal.refused_parameters() from public;
		grant usage on schema einmal to einmal_monitor;
		grant execute on function einmal.volume(), einmal.refused_parameters() to einmal_monitor;
	SQL
		fail CreationFailed 'the user and the database of the apps could not be created'
	pg_ctl --pgdata "$PGDATA.new" --wait --silent --mode fast stop
	sync
	mv "$PGDATA.new" "$PGDATA"
	sync
	say 'created the database'
}

data() {
	image=$(postgres --version)
	image=${image##*) }
	image=${image%%[!0-9]*}
	[ "$image" = "$MAJOR" ] || fail VersionMismatch "the image has PostgreSQL $image, not $MAJOR: correct spec.image, or the operator's flag --image"
	lock
	if [ ! -s "$PGDATA/PG_VERSION" ]; then
		await_grant
		case $granted in
		*' initdb') create ;;
		*) fail DataMissing 'the volume is empty, and held a database before' ;;
		esac
	fi
	found=$(cat "$PGDATA/PG_VERSION")
	[ "$found" = "$MAJOR" ] || fail VersionMismatch "the volume holds data of version $found, not $MAJOR: restore the volume, or set spec.version to $found"
}

# measure writes the size of the volume and what is free of it, in KiB, to where einmal.volume() reads it.
measure() {
	df -kP /data | while read -r _ size _ free _; do printf '%s %s\n' "$size" "$free"; done | tail -n 1 >/run/postgresql/volume.new
	mv /run/postgresql/volume.new /run/postgresql/volume
}

# configuration prints which configuration the kubelet has put into the container.
configuration() { readlink /config/..data; }

# watch measures the volume every five seconds, and lets the server read its configuration when that has changed.
watch() {
	while sleep 5; do
		measure || :
		now=$(configuration)
		[ "$now" = "$loaded" ] || {
			loaded=$now
			say 'the configuration has changed'
			kill -HUP "$pid"
		}
	done
}

# server stops quickly when the Pod is deleted: SIGINT ends sessions and writes a checkpoint. SIGTERM would wait for the clients.
server() {
	trap 'exit 143' TERM INT
	lock
	await_grant
	# A server that was killed leaves these files. Their process ID can be that of another process in this container, and then no server starts. The
	# lock says that no other server uses the volume.
	rm -f "$PGDATA/postmaster.pid" "$PGHOST"/.s.PGSQL.*
	measure
	loaded=$(configuration)
	postgres -D "$PGDATA" -c config_file=/config/postgresql.conf -c hba_file=/config/pg_hba.conf &
	pid=$!
	trap 'kill -INT $pid' TERM INT
	watch &
	code=0
	while kill -0 "$pid" 2>/dev/null; do
		wait "$pid" && code=0 || code=$?
	done
	say "postgres ended with $code"
	measure
	read -r size free </run/postgresql/volume
	# It needs room for the next segment of its write-ahead log.
	[ "$code" = 0 ] || [ "$free" -gt 20480 ] || fail VolumeFull "$((free / 1024)) of $((size / 1024)) MiB are free"
	exit "$code"
}

case ${1:-} in
data) data ;;
server) server ;;
*)
	say 'usage: server.sh data | server' >&2
	exit 2
	;;
esac
