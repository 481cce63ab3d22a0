# shellcheck shell=sh
# Sourced by backup.sh: how a server of PostgreSQL is dumped.

# query SQL prints the result of a query.
query() { run psql --no-psqlrc --quiet --no-align --tuples-only --no-password --command "$1"; }

# dump HOST makes the files of a backup.
dump() {
	export PGHOST="$1"
	# Whatever the parameters of the Database are: a standby executes no serializable transaction, and temp_file_limit can forbid temporary files.
	export PGOPTIONS='-c default_transaction_isolation=read\ committed -c statement_timeout=0 -c lock_timeout=0 -c idle_session_timeout=0 -c idle_in_transaction_session_timeout=0 -c work_mem=64MB'
	about=$(query "select current_setting('server_version_num')::int / 10000, pg_get_userbyid(datdba) from pg_database where datname = current_database()") &&
		query "select rolname from pg_roles where oid >= 16384 and rolname not like 'einmal\\_%' and rolname !~ '[[:cntrl:]]' order by 1" >"$part/roles" &&
		run pg_dump --no-password --format custom --no-unlogged-table-data --no-subscriptions --lock-wait-timeout 60s --file "$part/dump" || return 1
	say "${about%|*}" "${about##*|}" >"$part/about"
}

# check_dump reads the dump again.
check_dump() { run pg_restore --list "$part/dump" >/dev/null; }
