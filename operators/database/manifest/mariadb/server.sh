#!/bin/sh
# Usage: server.sh data | server
# The commands of the Pods of a Database with MariaDB. "data" creates the database, or checks the one that the volume holds. "server" runs it. Both need
# only the programs of MariaDB, flock and coreutils. With the variable RESTORE, "data" restores a backup into the new database: see load.sh. Then the
# operator replaces the Pod with one that has no backup.
#
# The operator decides what a Pod is: the annotation database.einmal.dev/grant of this very Pod says "UID TERM" if it may accept writes, where UID is
# its uid, and "UID TERM initdb" if an empty volume may also become an empty database.
set -eu
umask 077
engine=mariadb software=MariaDB flag=--mariadb-image volume=/run/mysqld/public/volume scripts=${0%/*}
# shellcheck disable=SC1091 # It is in the same folder.
. "$scripts/common.sh"

# create makes the database under another name, so that one that is not complete is never used.
create() {
	app=$(password app)
	monitor=$(password monitor)
	backup=$(password backup)
	choose_backup
	say 'creating the database'
	rm -rf "$DATA.new"
	mariadb-install-db --no-defaults --datadir="$DATA.new" --auth-root-authentication-method=socket --auth-root-socket-user=mysql --skip-test-db \
		--skip-name-resolve --force --innodb-use-native-aio=0 >/tmp/install.log 2>&1 || {
		cat /tmp/install.log
		fail CreationFailed 'mariadb-install-db failed; see the log of the container data'
	}
	# Until it is complete, the server is reachable by its socket only, which no other container uses yet.
	mariadbd --defaults-file=/config/mariadb.cnf --datadir="$DATA.new" --skip-networking --skip-event-scheduler --max-allowed-packet=1G 2>/tmp/create.log &
	pid=$!
	until mariadb-admin --no-defaults ping >/dev/null 2>&1; do
		kill -0 "$pid" 2>/dev/null || {
			cat /tmp/create.log
			fail CreationFailed 'the server for the new database did not start; see the log of the container data'
		}
		sleep 0.2
	done
	# An error can quote a statement with a password, so it is not printed.
	users | mariadb --no-defaults >/tmp/create-users.log 2>&1 || fail CreationFailed 'the user and the database of the apps could not be created'
	zones
	[ -z "${RESTORE:-}" ] || restore
	kill "$pid"
	wait "$pid" || fail CreationFailed 'the server for the new database did not end in order'
	say "$MAJOR" >"$DATA.new/einmal.version"
	sync
	mv "$DATA.new" "$DATA"
	sync
	say 'created the database'
}

# users prints the statements that create the database, its users, and what the operator asks. In a grant, _ stands for any character.
users() {
	cat <<-SQL
		create database \`$APP_DATABASE\`;
		create user '$APP_USERNAME'@'%' identified by '$app';
		grant all on \`$(escape "$APP_DATABASE")\`.* to '$APP_USERNAME'@'%';
		create user einmal_monitor@'%' identified by '$monitor' with max_user_connections 4;
		create user einmal_backup@'%' identified by '$backup';
		grant select, show view, trigger, event, lock tables on \`$(escape "$APP_DATABASE")\`.* to einmal_backup@'%';
		grant select on mysql.proc to einmal_backup@'%';
		create database einmal;
		create function einmal.volume() returns text sql security definer reads sql data return load_file('/run/mysqld/public/volume');
		create function einmal.configuration() returns text sql security definer reads sql data return load_file('/run/mysqld/public/configuration');
		grant execute on einmal.* to einmal_monitor@'%';
	SQL
}

# zones loads the names of time zones, which CONVERT_TZ needs, if the image has them.
zones() {
	[ -d /usr/share/zoneinfo ] || return 0
	mariadb-tzinfo-to-sql --skip-write-binlog /usr/share/zoneinfo 2>/dev/null | mariadb --no-defaults mysql || say 'the names of time zones could not be loaded'
}

# escape NAME prints a name for a grant.
escape() {
	rest=$1 escaped=''
	while [ "$rest" != "${rest#*_}" ]; do
		escaped="$escaped${rest%%_*}\\_" rest=${rest#*_}
	done
	say "$escaped$rest"
}

# prepare makes the folders that the server needs. Temporary files are in the volume, because the disk of the node has none of its size.
prepare() {
	rm -rf /data/tmp
	mkdir -p /data/tmp /run/mysqld/public
}

data() {
	pin /run/mysqld/scripts
	image=$(mariadbd --version)
	image=${image#*Ver }
	image=${image%%-*}
	lock
	found=
	[ ! -s "$DATA/einmal.version" ] || found=$(cat "$DATA/einmal.version")
	check_versions "${image%.*}" "$found"
	prepare
	await_grant
	case "$granted ${found:+data}" in
	*' initdb ') create ;;
	*' ') fail DataMissing 'the volume is empty, and held a database before' ;;
	esac
	report_restored
}

# stop ends the server when the Pod is deleted. A server that gets SIGTERM while it starts never ends, so it gets it when it answers.
stop() {
	until mariadb-admin --no-defaults ping >/dev/null 2>&1 || ! kill -0 "$pid" 2>/dev/null; do sleep 0.2; done
	kill "$pid" 2>/dev/null || :
}

server() {
	begin
	# A server that was killed leaves these files. The lock says that no other server uses the volume.
	rm -f /run/mysqld/mysqld.*
	prepare
	# What einmal.volume() and einmal.configuration() read. The server requires that all users may read the files.
	measure
	cp /config/configuration /run/mysqld/public/configuration
	chmod a+r /run/mysqld/public/configuration
	mariadbd --defaults-file=/config/mariadb.cnf &
	pid=$!
	trap stop TERM INT
	while sleep 5; do measure || :; done &
	await_end
	check_room
	exit "$code"
}

main "$@"
