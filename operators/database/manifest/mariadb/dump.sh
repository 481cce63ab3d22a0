# shellcheck shell=sh
# Sourced by backup.sh: how a server of MariaDB is dumped.

# dump HOST makes the files of a backup. All tables of InnoDB are dumped as they were at one time, while apps write. A password is in the variable MYSQL_PWD.
dump() {
	server="--no-defaults --host=$1 --user=einmal_backup"
	# shellcheck disable=SC2086 # No option contains a space.
	version=$(run mariadb $server --batch --skip-column-names --execute "select substring_index(version(), '.', 2)") || return 1
	rm -f /tmp/failed
	# shellcheck disable=SC2086
	{ run mariadb-dump $server --single-transaction --routines --events --dump-history --hex-blob --no-tablespaces --default-character-set=utf8mb4 \
		--max-allowed-packet=1G "$APP_DATABASE" || : >/tmp/failed; } | run_gzip || return 1
	[ ! -e /tmp/failed ] || return 1
	say "$version" "$APP_USERNAME" mariadb >"$part/about"
	: >"$part/roles"
}

# run_gzip compresses a dump.
run_gzip() { gzip >"$part/dump" 2>/tmp/gzip || { cat /tmp/gzip >&2; return 1; }; }

# check_dump reads the dump again. A dump that is complete says so in its last line.
check_dump() {
	last=$(gzip -dc "$part/dump" 2>/tmp/errors | tail -n 1)
	case $last in
	'-- Dump completed'*) ;;
	*) return 1 ;;
	esac
}
