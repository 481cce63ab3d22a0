# shellcheck shell=sh
# Sourced by backup.sh: how a server of PostgreSQL is dumped.

# query SQL prints the result of a query.
query() { run psql --no-psqlrc --quiet --no-align --tuples-only --no-password --command "$1"; }

# dump HOST makes the files of a backup.
dump() {
	export PGHOST="$1"
	# Whatever the parameters of the Database are: a standby executes no serializable transaction, and temp_file_limit can forbid temporary files. With this
	# search_path, a query calls no function and no operator of the apps.
	export PGOPTIONS='-c search_path=pg_catalog,pg_temp -c default_transaction_isolation=read\ committed -c statement_timeout=0 -c lock_timeout=0 -c idle_session_timeout=0 -c idle_in_transaction_session_timeout=0 -c work_mem=64MB'
	about=$(query "select current_setting('server_version_num')::int / 10000, pg_get_userbyid(datdba) from pg_database where datname = current_database()") &&
		query "select rolname from pg_roles where oid >= 16384 and rolname not like 'einmal\\_%' and rolname !~ '[[:cntrl:]]' order by 1" >"$part/roles" &&
		say "${about%|*}" "${about##*|}" >"$part/about" &&
		properties >>"$part/about" &&
		run pg_dump --no-password --format custom --no-unlogged-table-data --no-subscriptions --lock-wait-timeout 60s --file "$part/dump"
}

# properties prints what pg_dump does not have: the settings of the database and of roles, the rights and the comment of the database, and which tables and
# sequences in the dump are those of extensions. Each is a line with JSON, which load.sh reads.
properties() {
	query "select json_build_object('kind', 'setting', 'role', rolname, 'database', datname is not null, 'name', split_part(one, '=', 1),
			'value', substr(one, strpos(one, '=') + 1))
		from pg_db_role_setting left join pg_database on pg_database.oid = setdatabase left join pg_roles on pg_roles.oid = setrole,
			unnest(setconfig) with ordinality as config(one, position)
		where (setdatabase = 0 or datname = current_database()) and (setrole = 0 or setrole >= 16384 and rolname not like 'einmal\\_%')
		order by setdatabase, rolname, position" &&
		query "select json_build_object('kind', 'rights') from pg_database where datname = current_database() and datacl is not null" &&
		query "select json_build_object('kind', 'right', 'role', rolname, 'name', privilege_type, 'grantable', is_grantable)
			from pg_database, aclexplode(datacl) left join pg_roles on pg_roles.oid = grantee
			where datname = current_database() and (grantee = 0 or grantee >= 16384 and rolname not like 'einmal\\_%')" &&
		query "select json_build_object('kind', 'comment', 'value', comment)
			from pg_database, shobj_description(oid, 'pg_database') as comment where datname = current_database() and comment is not null" &&
		query "select json_build_object('kind', 'extensions', 'tables', json_agg(concat_ws(' ', nspname, relname)))
			from pg_extension, unnest(extconfig) as config join pg_class on pg_class.oid = config join pg_namespace on pg_namespace.oid = relnamespace
			having count(*) > 0"
}

# check_dump reads the dump again.
check_dump() { run pg_restore --list "$part/dump" >/dev/null; }
