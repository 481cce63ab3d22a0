#!/bin/sh
# Usage: server.sh data | server
# The commands of the Pods of a Database. "data" creates the database or copies that of the primary, or checks the one that the volume holds.
# "server" runs it. Both need only the programs of PostgreSQL, flock and coreutils. With the variable RESTORE, "data" restores a backup into the new
# database: see load.sh. Then the operator replaces the Pod with one that has no backup.
#
# The operator decides what a Pod is: the annotation database.einmal.dev/grant of this very Pod says "UID TERM" if it may accept writes, where UID is
# its uid, "UID TERM initdb" if an empty volume may also become an empty database, and "UID standby" if it is a standby.
set -eu
umask 077
engine=postgresql software=PostgreSQL flag=--image volume=/run/postgresql/volume scripts=${0%/*}
# shellcheck disable=SC1091 # It is in the same folder.
. "$scripts/common.sh"

# create makes the database under another name, so that one that is not complete is never used.
create() {
	app=$(password app)
	monitor=$(password monitor)
	replication=$(password replication)
	backup=$(password backup)
	choose_backup
	say 'creating the database'
	rm -rf "$PGDATA.new"
	initdb --pgdata "$PGDATA.new" --username postgres --data-checksums --encoding UTF8 --locale C.UTF-8 --auth-local peer --auth-host reject \
		--no-instructions >/tmp/initdb.log 2>&1 || {
		cat /tmp/initdb.log
		fail CreationFailed 'initdb failed; see the log of the container data'
	}
	# Until it is complete, the server is reachable by its socket only, which no other container uses yet. So the user that restores a backup needs no password.
	printf 'local all postgres peer\nlocal "%s" "%s" trust\n' "$APP_DATABASE" "$APP_USERNAME" >/tmp/hba.conf
	# A statement with the password must not be logged, even if it fails.
	: >/tmp/create.log # The server would append to what an earlier container of the Pod has left.
	pg_ctl --pgdata "$PGDATA.new" --wait --silent --log /tmp/create.log start \
		--options "-c hba_file=/tmp/hba.conf -c listen_addresses='' -c unix_socket_directories=$PGHOST -c password_encryption=scram-sha-256 -c log_min_error_statement=panic -c log_line_prefix='%e '" || {
		cat /tmp/create.log
		fail CreationFailed 'the server for the new database did not start; see the log of the container data'
	}
	psql --no-psqlrc --quiet --set ON_ERROR_STOP=1 --set VERBOSITY=terse --dbname postgres >/tmp/create-roles.log 2>&1 <<-SQL ||
		create role "$APP_USERNAME" login password '$app';
		create database "$APP_DATABASE" owner "$APP_USERNAME";
		create role einmal_monitor login password '$monitor' connection limit 4;
		create role einmal_replication login replication password '$replication';
		create role einmal_backup login bypassrls password '$backup' in role pg_read_all_data, "$APP_USERNAME";
		alter role einmal_backup set default_transaction_read_only = on;
		\i $scripts/monitor.sql
	SQL
		fail CreationFailed 'the user and the database of the apps could not be created'
	[ -z "${RESTORE:-}" ] || restore
	pg_ctl --pgdata "$PGDATA.new" --wait --silent --mode fast stop
	sync
	mv "$PGDATA.new" "$PGDATA"
	sync
	say 'created the database'
}

# follow writes the password of the replication into memory, and sets how a standby connects to the primary and the name of its slot.
follow() {
	replication=$(password replication)
	printf '*:*:*:*:%s\n' "$replication" >"$PGHOST/pgpass"
	# The parameters of the Database must not end the connection: it is idle between two commands.
	own='-c idle_session_timeout=0 -c statement_timeout=0 -c lock_timeout=0 -c idle_in_transaction_session_timeout=0'
	connection="host=$PRIMARY port=5432 user=einmal_replication passfile=$PGHOST/pgpass application_name=$POD_NAME connect_timeout=5 sslmode=disable options='$own'"
	slot=einmal_${POD_NAME##*-}
}

# primary COMMAND executes a command of the replication protocol in the primary.
primary() { psql --no-psqlrc --quiet --no-align --tuples-only --dbname "$connection replication=true" --command "$1"; }

# control NAME prints a value of the control file of the volume's database.
control() {
	LC_ALL=C pg_controldata "$PGDATA" | while IFS=: read -r name value; do
		[ "$name" != "$1" ] || say "${value##* }"
	done
}

# await_primary waits until the primary answers.
await_primary() {
	primary IDENTIFY_SYSTEM >/dev/null || say 'waiting for the primary'
	until primary IDENTIFY_SYSTEM >/dev/null 2>&1; do sleep 1; done
}

# The file $copying exists while the volume's database is to be replaced by a copy. It is not empty if there was no room for both.
copying=${PGDATA%/*}/copying

# free prints how much of the volume is free, in KiB.
free() { df -kP "${PGDATA%/*}" | while read -r _ _ _ kibibytes _; do say "$kibibytes"; done | tail -n 1; }

# has_room reports whether the volume has room for a second copy.
has_room() {
	[ -e "$PGDATA" ] || return 0
	size=$(du -sk "$PGDATA")
	size=${size%%[!0-9]*}
	[ ! -s "$copying" ] && [ "$(free)" -gt "$((size + size / 10))" ]
}

# copy makes the copy of a standby under another name, so that one that is not complete is never used, and so that what the volume holds is kept until then.
# The slot keeps what the primary writes meanwhile.
copy() {
	await_primary
	say 'copying the primary'
	: >>"$copying"
	rm -rf "$PGDATA.new"
	has_room || {
		say 'the volume has no room for two copies, so the old one is removed first'
		rm -rf "$PGDATA"
	}
	primary "DROP_REPLICATION_SLOT $slot WAIT" 2>/dev/null || :
	primary "CREATE_REPLICATION_SLOT $slot PHYSICAL RESERVE_WAL" >/dev/null || fail CopyFailed 'the primary does not make a replication slot; see the log of the container data'
	# A manifest needs a temporary file in the primary, which temp_file_limit can forbid, and nothing reads it.
	pg_basebackup --pgdata "$PGDATA.new" --dbname "$connection" --wal-method stream --checkpoint fast --slot "$slot" --no-password --no-manifest || {
		[ "$(free)" -gt 20480 ] || say full >"$copying"
		fail CopyFailed 'pg_basebackup failed; see the log of the container data'
	}
	: >"$PGDATA.new/standby.signal"
	sync
	[ ! -e "$PGDATA" ] || mv "$PGDATA" "$PGDATA.old"
	replace
	say 'copied the primary'
}

# replace puts a complete copy in the place of what the volume held. After a crash, it goes on where it was: the name with .old exists only if the copy is
# complete.
replace() {
	[ -e "$PGDATA" ] || mv "$PGDATA.new" "$PGDATA"
	sync
	rm -f "$copying"
	rm -rf "$PGDATA.old"
}

# number LOCATION prints a location in the write-ahead log as a number.
number() { say "$((0x${1%/*} * 4294967296 + 0x${1#*/}))"; }

# check_copy makes the copy again if the primary does not have what it lacks any more. If the primary cannot be reached, a standby starts with what it has.
check_copy() {
	[ -e "$PGDATA/standby.signal" ] || await_primary
	until identity=$(primary IDENTIFY_SYSTEM); do
		[ ! -e "$PGDATA/standby.signal" ] || return 0
		await_primary
	done
	[ "${identity%%|*}" = "$(control 'Database system identifier')" ] || fail OtherDatabase 'the volume holds a copy of another database'
	[ -e "$PGDATA/standby.signal" ] || {
		rest=${identity#*|}
		demote "${rest%%|*}"
	}
	slots=$(primary "READ_REPLICATION_SLOT $slot") || return 0
	case $slots in
	*'|'?*'|'*) ;;
	*)
		say 'the primary has deleted what this copy lacks'
		copy
		;;
	esac
}

# demote TIMELINE makes the database of a former primary a copy of the primary, whose timeline is TIMELINE. The history of the primary says where it left
# the timeline of the former one. If that was shut down cleanly before, the primary has everything that it has.
demote() {
	own=$(control "Latest checkpoint's TimeLineID") forked=
	[ "$1" = "$own" ] || history=$(primary "TIMELINE_HISTORY $1") || fail CopyFailed 'the primary does not answer; see the log of the container data'
	[ "$1" = "$own" ] || forked=$(say "$history" | while read -r line location _; do
		[ "${line#*|}" != "$own" ] || number "$location" # The first line begins with the name of the file.
	done)
	[ -n "$forked" ] || fail NotACopy 'the volume holds a database that is not the copy of a standby'
	if [ "$(control 'Database cluster state')" = down ] && [ "$(number "$(control 'Latest checkpoint location')")" -lt "$forked" ]; then
		: >"$PGDATA/standby.signal"
		sync
		say 'the server of this volume was the primary, and becomes a standby'
	else
		say 'the server of this volume was the primary, and has written what the current primary does not have'
		copy
	fi
}

data() {
	pin "$PGHOST/scripts"
	image=$(postgres --version)
	image=${image##*) }
	lock
	[ ! -e "$PGDATA.old" ] || replace
	found=
	[ ! -s "$PGDATA/PG_VERSION" ] || found=$(cat "$PGDATA/PG_VERSION")
	check_versions "${image%%[!0-9]*}" "$found"
	await_grant
	case "$granted ${found:+data}" in
	'standby ')
		follow
		copy
		;;
	'standby data')
		follow
		if [ -e "$copying" ]; then copy; else check_copy; fi
		;;
	*' initdb ') create ;;
	*' data') [ ! -e "$copying" ] || fail NotThePrimary 'the volume holds a database that is being replaced by a copy of the primary' ;;
	*' ') fail DataMissing 'the volume is empty, and held a database before' ;;
	esac
	report_restored
}

# configuration prints which configuration the kubelet has put into the container.
configuration() { readlink /config/..data; }

# migrate lets the functions of the operator be those of this script, once and when the server accepts writes. So an upgrade of the operator reaches a
# database that an earlier one has created, and its standbys. It also limits the connections of apps, so that some are left for the operator.
migrate() {
	[ -z "$migrated" ] || return 0
	[ ! -e "$PGDATA/standby.signal" ] || return 0
	pg_isready -q || return 0
	# Whatever the parameters of the Database are.
	own='-c search_path=pg_catalog,pg_temp -c default_transaction_isolation=read\ committed -c default_transaction_read_only=off -c statement_timeout=0'
	if PGOPTIONS="$own -c lock_timeout=10s -c idle_session_timeout=0 -c idle_in_transaction_session_timeout=0" \
		psql --no-psqlrc --quiet --set ON_ERROR_STOP=1 --set VERBOSITY=terse --set app="${APP_USERNAME:-}" --dbname postgres \
		--file "$scripts/monitor.sql" --file "$scripts/limit.sql" >/tmp/migrate.log 2>&1; then
		migrated=1
	else
		say 'the functions of the operator could not be updated; it is tried again'
		cat /tmp/migrate.log
	fi
}

# watch measures the volume every five seconds, and lets the server read its configuration when that has changed.
watch() {
	migrated=
	while sleep 5; do
		measure || :
		migrate
		now=$(configuration)
		[ "$now" = "$loaded" ] || {
			loaded=$now
			say 'the configuration has changed'
			kill -HUP "$pid"
		}
	done
}

# least PARAMETER NAME adds an option if the configuration has less than the control file: a standby must have at least what the primary had when it
# wrote what the standby has not read yet.
least() {
	had=$(control "$2")
	[ "$(postgres -D "$PGDATA" -c config_file=/config/postgresql.conf -C "$1")" -ge "$had" ] || options="$options -c $1=$had"
}

# standby sets the options of a standby.
standby() {
	follow
	least max_connections 'max_connections setting'
	least max_worker_processes 'max_worker_processes setting'
	least max_wal_senders 'max_wal_senders setting'
	least max_prepared_transactions 'max_prepared_xacts setting'
	least max_locks_per_transaction 'max_locks_per_xact setting'
	options="$options -c primary_slot_name=$slot"
}

# server stops quickly when the Pod is deleted: SIGINT ends sessions and writes a checkpoint. SIGTERM would wait for the clients.
server() {
	begin
	# A server that was killed leaves these files. Their process ID can be that of another process in this container, and then no server starts. The
	# lock says that no other server uses the volume.
	rm -f "$PGDATA/postmaster.pid" "$PGHOST"/.s.PGSQL.*
	measure
	loaded=$(configuration)
	options='' connection=''
	case $granted in
	standby)
		[ -e "$PGDATA/standby.signal" ] || fail NotACopy 'the volume holds a database that is not the copy of a standby'
		# The slots of a former primary would keep what it wrote.
		rm -rf "$PGDATA"/pg_replslot/einmal_*
		standby
		;;
	*' promote') [ ! -e "$PGDATA/standby.signal" ] || standby ;;
	*) [ ! -e "$PGDATA/standby.signal" ] || fail NotThePrimary 'the volume holds the copy of a standby' ;;
	esac
	# shellcheck disable=SC2086 # No option contains a space.
	postgres -D "$PGDATA" -c config_file=/config/postgresql.conf -c hba_file=/config/pg_hba.conf -c primary_conninfo="$connection" $options &
	pid=$!
	trap 'kill -INT "$pid"' TERM INT
	watch &
	await_end
	# The operator promotes a standby only after this report.
	[ "$code" != 0 ] || [ "$(control 'Database cluster state')" != down ] || printf 'ShutDown: %s' "$(control 'Latest checkpoint location')" >/dev/termination-log
	check_room
	exit "$code"
}

main "$@"
