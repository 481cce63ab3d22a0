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
engine=postgresql software=PostgreSQL flag=--image volume=/run/postgresql/volume
# shellcheck disable=SC1091 # It is in the same folder of the ConfigMap.
. /config/common.sh

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
	pg_ctl --pgdata "$PGDATA.new" --wait --silent --log /tmp/create.log start \
		--options "-c hba_file=/tmp/hba.conf -c listen_addresses='' -c unix_socket_directories=$PGHOST -c password_encryption=scram-sha-256 -c log_min_error_statement=panic" || {
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
		create schema einmal;
		create function einmal.volume() returns text language sql security definer set search_path = pg_catalog, pg_temp
			as 'select pg_read_file(''/run/postgresql/volume'')';
		create function einmal.refused_parameters() returns text language sql security definer set search_path = pg_catalog, pg_temp
			as \$\$select coalesce(string_agg(name || ': ' || error, '; '), '') from pg_file_settings left join pg_settings using (name)
				where error is not null and pending_restart is not true\$\$;
		create function einmal.standbys() returns json language sql security definer set search_path = pg_catalog, pg_temp
			as \$\$select coalesce(json_agg(json_build_object('slot', slot_name, 'lost', coalesce(wal_status = 'lost', false), 'copying', coalesce(application_name =
				'pg_basebackup', false), 'state', coalesce(state, ''), 'lag', greatest(0, pg_wal_lsn_diff(pg_current_wal_lsn(), replay_lsn)::bigint)) order by slot_name), '[]')
				from pg_replication_slots left join pg_stat_replication on pid = active_pid
				where slot_type = 'physical' and slot_name ~ '^einmal_[0-9]+\$' and not pg_is_in_recovery()\$\$;
		create function einmal.timeline() returns int language sql security definer set search_path = pg_catalog, pg_temp
			as \$\$select coalesce(max(('x' || left(name, 8))::bit(32)::int), 0) from pg_ls_waldir() where name ~ '^[0-9A-F]{24}\$'\$\$;
		create function einmal.forks() returns json language sql security definer set search_path = pg_catalog, pg_temp
			as \$\$select coalesce(json_object_agg(split_part(line, chr(9), 1), pg_wal_lsn_diff(split_part(line, chr(9), 2)::pg_lsn, '0/0')), '{}')
				from regexp_split_to_table(case when pg_is_in_recovery() then '' else
					pg_read_file('pg_wal/' || left(pg_walfile_name(pg_current_wal_lsn()), 8) || '.history', 0, 1000000, true) end, chr(10)) line
				where line ~ '^[0-9]'\$\$;
		create function einmal.release(slot text) returns void language sql security definer set search_path = pg_catalog, pg_temp
			as \$\$select pg_drop_replication_slot(slot_name) from pg_replication_slots
				where slot_name = slot and slot_type = 'physical' and slot_name ~ '^einmal_[0-9]+\$' and not active\$\$;
		create function einmal.promote(slots text[]) returns boolean language sql security definer set search_path = pg_catalog, pg_temp
			as \$\$select pg_create_physical_replication_slot(slot, true) from unnest(slots) slot
				where slot ~ '^einmal_[0-9]+\$' and slot not in (select slot_name from pg_replication_slots);
			select case when pg_is_in_recovery() then pg_promote(true, 30) else true end\$\$;
		revoke all on all functions in schema einmal from public;
		grant pg_checkpoint to einmal_monitor;
		grant usage on schema einmal to einmal_monitor;
		grant execute on all functions in schema einmal to einmal_monitor;
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
	connection="host=$PRIMARY port=5432 user=einmal_replication passfile=$PGHOST/pgpass application_name=$POD_NAME connect_timeout=5 sslmode=disable"
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

# copy makes the copy of a standby under another name, so that one that is not complete is never used. The slot keeps what the primary writes
# meanwhile.
copy() {
	await_primary
	say 'copying the primary'
	rm -rf "$PGDATA" "$PGDATA.new"
	primary "DROP_REPLICATION_SLOT $slot WAIT" 2>/dev/null || :
	primary "CREATE_REPLICATION_SLOT $slot PHYSICAL RESERVE_WAL" >/dev/null || fail CopyFailed 'the primary does not make a replication slot; see the log of the container data'
	pg_basebackup --pgdata "$PGDATA.new" --dbname "$connection" --wal-method stream --checkpoint fast --slot "$slot" --no-password ||
		fail CopyFailed 'pg_basebackup failed; see the log of the container data'
	: >"$PGDATA.new/standby.signal"
	sync
	mv "$PGDATA.new" "$PGDATA"
	sync
	say 'copied the primary'
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
	image=$(postgres --version)
	image=${image##*) }
	lock
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
		check_copy
		;;
	*' initdb ') create ;;
	*' ') fail DataMissing 'the volume is empty, and held a database before' ;;
	esac
	report_restored
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
