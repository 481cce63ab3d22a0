# shellcheck shell=sh
# Sourced by server.sh: fills the new database with the backup that common.sh has chosen.
#
# The owner of the database makes everything, because a backup can have any SQL in it. What fails does not end the restore: it is in the file $missing, a line
# each, and the errors are in the file $log. But a database without some of its rows is not complete, and the restore fails.

missing=/tmp/missing again=/tmp/again log=/data/restore.log

# can_load VERSION reports whether a server of this major version can read a backup.
can_load() { [ "$1" -le "$MAJOR" ]; }

# as_owner COMMAND… runs a program that connects to the database as its owner. Settings that the backup has for the owner must not disturb it.
as_owner() {
	own='-c role=none -c default_transaction_isolation=read\ committed -c default_transaction_read_only=off -c statement_timeout=0 -c lock_timeout=0'
	LC_ALL=C PGUSER="$APP_USERNAME" PGDATABASE="$APP_DATABASE" \
		PGOPTIONS="$own -c idle_session_timeout=0 -c idle_in_transaction_session_timeout=0 -c standard_conforming_strings=on" "$@"
}

# sql executes the statements of its input. Variables of psql are its arguments: --set name=value. Errors are also in the file $log.
sql() {
	psql --no-psqlrc --quiet --no-align --tuples-only --set ON_ERROR_STOP=1 --set VERBOSITY=terse "$@" 2>/tmp/errors || {
		cat /tmp/errors >>$log
		cat /tmp/errors >&2
		return 1
	}
}

# restore_part LIST LOG restores the listed parts of the backup. The numbers of those that fail are in the file $again. Errors are also in the file LOG.
restore_part() {
	: >$again
	{
		as_owner pg_restore --verbose --no-owner --dbname "$APP_DATABASE" --use-list "$1" "/backup/$chosen/dump" 2>&1 && say 'pg_restore has ended' ||
			say "pg_restore failed with $?"
	} | failures "$2" || fail RestoreFailed "the backup $chosen could not be restored; see the log of the container data"
}

# failures LOG prints what pg_restore says, and writes the numbers of the parts that fail into the file $again, and errors into the file LOG. It fails if
# pg_restore has not come to its end. A pg_restore of PostgreSQL 17 or later sets a parameter that an older server does not know, which has no effect.
failures() {
	part='' ended=1
	while IFS= read -r line; do
		say "$line"
		case $line in
		'pg_restore: from TOC entry '*) part=${line#*' entry '} part=${part%%;*} ;;
		'pg_restore: error: '*'parameter "transaction_timeout"') ;;
		'pg_restore: error: '*) say "$part" >>$again ;;
		'pg_restore: warning: errors ignored on restore: '* | 'pg_restore has ended') ended=0 ;;
		esac
		case $line in
		'pg_restore: error: '* | 'pg_restore: from TOC entry '*) say "$line" >>"$1" ;;
		'pg_restore'*) ;;
		*) say "$line" >>"$1" ;;
		esac
	done
	return $ended
}

# listed prints the lines of the list of all parts whose numbers are in the file $again, in the order of the list.
listed() {
	numbers=" $(tr '\n' ' ' <$again)"
	while IFS= read -r line; do
		case $numbers in *" ${line%%;*} "*) say "$line" ;; esac
	done </tmp/list
}

# note_parts writes what the listed parts of its input are into the file $missing.
note_parts() {
	while IFS= read -r part; do
		line=${part#*; } line=${line#* } line=${line#* } line=${line% *} # Without the numbers and the owner.
		case $line in
		'COMMENT - EXTENSION '*) continue ;; # Each extension has one, and only its owner can set it.
		'TABLE DATA '*) ! of_extension "$line" || has_rows "$part" || continue ;;
		esac
		say "$line"
	done >>$missing
}

# of_extension LINE succeeds if a line of the file $missing is a table or a sequence of an extension, such as spatial_ref_sys of PostGIS. A backup has the rows
# that a superuser has added to it.
of_extension() {
	while IFS= read -r known; do
		[ "$known" != "$1" ] || return 0
	done </tmp/configuration
	return 1
}

# has_rows PART succeeds if the backup has rows of this listed table.
has_rows() {
	say "$1" >/tmp/table
	first=$(pg_restore --use-list /tmp/table --file - "/backup/$chosen/dump" | while IFS= read -r text; do
		case $text in 'COPY '*' FROM stdin;') IFS= read -r text && say "row $text" && break ;; esac
	done)
	[ "$first" != 'row \.' ]
}

# create_roles creates the other roles, which cannot log in.
create_roles() {
	while read -r role; do
		sql --set role="$role" --username postgres --dbname postgres <<-'SQL' || fail RestoreFailed "the role $role could not be created; see the log of the container data"
			select format('create role %I', :'role') where not exists (select from pg_roles where rolname = :'role') \gexec
		SQL
	done <"/backup/$chosen/roles"
}

# create_extensions creates the listed extensions: as the owner of the database, who can create those that are marked as trusted. The superuser creates the
# extensions of the variable EXTENSIONS. Of their SQL in the backup, only the name and the schema count.
create_extensions() {
	while IFS= read -r line; do
		say "$line" >/tmp/extension
		statement=$(pg_restore --use-list /tmp/extension --file - "/backup/$chosen/dump" | while IFS= read -r line; do
			case $line in 'CREATE EXTENSION IF NOT EXISTS '*' WITH SCHEMA '*';') say "$line" && break ;; esac
		done)
		name=${statement#'CREATE EXTENSION IF NOT EXISTS '} role=$APP_USERNAME
		schema=${name##*' WITH SCHEMA '}
		schema=$(unquote "${schema%;}") name=$(unquote "${name%%' WITH SCHEMA '*}")
		case $name in
		*[!a-zA-Z0-9_-]*) ;;
		*) case " ${EXTENSIONS:-} " in *" $name "*) role=postgres ;; esac ;;
		esac
		say "creating the extension $name"
		[ -n "$name" ] && sql --username "$role" --dbname "$APP_DATABASE" --set name="$name" --set schema="$schema" <<-'SQL' || say "$line" | note_parts
			create extension if not exists :"name" schema :"schema";
		SQL
	done <"$1"
}

# list_configuration lists the tables and sequences of extensions whose contents are in a backup, as note_parts names them: those that the backup says, and those of
# the extensions that are here now, because an old backup says none.
list_configuration() {
	said='{"tables":[]}'
	while IFS= read -r line; do
		case $line in '{"kind" : "extensions"'*) said=$line ;; esac
	done <"/backup/$chosen/about"
	sql --username postgres --dbname "$APP_DATABASE" --set said="$said" >/tmp/configuration <<-'SQL'
		set search_path = pg_catalog, pg_temp;
		with tables as (select json_array_elements_text(:'said'::json -> 'tables') as name
			union select concat_ws(' ', nspname, relname)
				from pg_extension, unnest(extconfig) as config join pg_class on pg_class.oid = config join pg_namespace on pg_namespace.oid = relnamespace)
		select concat_ws(' ', kind, name) from tables, unnest(array['TABLE DATA', 'SEQUENCE SET']) as kind;
	SQL
}

# unquote NAME prints a name as it is without the quotes of SQL.
unquote() {
	case $1 in
	'"'*'"') set -- "${1#?}" && say "${1%?}" ;;
	*) say "$1" ;;
	esac
}

# apply_properties KIND… applies those properties of the backup that are of these kinds: see dump.sh. The value of a setting that is a list of names has quotes
# in it, so it is set in the session first, and taken from there.
apply_properties() {
	tail -n +2 "/backup/$chosen/about" | while IFS= read -r line; do
		for kind; do
			case $line in '{"kind" : "'"$kind"'"'*) ;; *) continue ;; esac
			as_owner sql --set line="$line" <<-'SQL' || describe_property "$line" >>$missing
				begin;
				\o /dev/null
				with properties as (select kind, name, value, grantable, quote_ident(current_database()) as this, coalesce(quote_ident(role), 'public') as role,
						case when role is null then 'database ' || quote_ident(current_database()) else 'role ' || quote_ident(role) ||
							case when database then ' in database ' || quote_ident(current_database()) else '' end end as owner
					from json_to_record(:'line') as line(kind text, role text, database boolean, name text, value text, grantable boolean))
				select case kind
					when 'setting' then case when lists then format('select set_config(%L, %L, true)', name, value) end
					when 'rights' then format('revoke all on database %s from public', this)
					when 'right' then format('grant %s on database %s to %s', name, this, role) || case when grantable then ' with grant option' else '' end
					when 'comment' then format('comment on database %s is %L', this, value) end,
					case kind when 'setting' then case when lists then format('alter %s set %I from current', owner, name)
						else format('alter %s set %I to %L', owner, name, value) end end
				from properties, lateral (select name in ('search_path', 'temp_tablespaces', 'local_preload_libraries', 'session_preload_libraries')) as of_names(lists) \gexec
				commit;
			SQL
		done
	done
}

# describe_property LINE prints what a property is.
describe_property() {
	sql --username postgres --dbname postgres --set line="$1" <<-'SQL' || say 'a setting that cannot be read'
		select upper(kind) || coalesce(' ' || name, '') || coalesce(' of ' || role, '')
			from json_to_record(:'line') as line(kind text, role text, name text);
	SQL
}

# try_again restores once more what has failed. A dump sets an empty search_path, with which a function of the apps does not find what its body names without a
# schema. So each function that does not set a search_path gets that of the owner, until this is over.
try_again() {
	[ -s $again ] || return 0
	say 'trying again what has failed, with the search_path of the owner'
	listed >/tmp/second
	functions=$(as_owner sql <<-'SQL'
		select coalesce(string_agg(oid::text, ','), '0') from pg_proc where proowner = current_user::regrole and prokind <> 'a'
			and not exists (select from unnest(proconfig) as setting where setting like 'search\_path=%')
			and not exists (select from pg_depend where classid = 'pg_proc'::regclass and objid = pg_proc.oid and deptype = 'e');
	SQL
	)
	alter_functions 'set search_path from current'
	restore_part /tmp/second $log
	alter_functions 'reset search_path'
}

# alter_functions ACTION alters the functions whose oids are in the variable functions.
alter_functions() {
	as_owner sql <<-SQL
		select format('alter routine %s $1', oid::regprocedure) from pg_proc where oid in ($functions) \gexec
	SQL
}

# check_server fails if the server has failed at something for reasons of its own, for example because the volume is full. Its log has the code of each error.
check_server() {
	while read -r code level _; do
		case "$code $level" in
		08???' '[EFP]*: | 53???' '[EFP]*: | 57P??' '[EFP]*: | 58???' '[EFP]*: | XX00[12]' '[EFP]*:)
			fail RestoreFailed "the backup $chosen could not be restored, because the server has failed with $code; see the log of the container data" ;;
		esac
	done </tmp/create.log
}

# check_rows fails if rows, large objects or numbers of sequences are missing. Those of extensions are named only: a superuser has made them.
check_rows() {
	while IFS= read -r part; do
		case $part in
		'TABLE DATA '* | 'SEQUENCE SET '* | BLOB*)
			of_extension "$part" ||
				fail RestoreFailed "data of the backup $chosen could not be restored; see the log of the container data; what failed: $(summary | paste -s -d , -)" ;;
		esac
	done <$missing
}

# summary prints some lines of the file $missing.
summary() {
	more=$(($(wc -l <$missing) - 20))
	head -n 20 $missing | cut -b -150
	[ $more -le 0 ] || say "and $more more"
}

# restore fills the new database.
restore() {
	say "restoring the backup $chosen"
	: >$missing
	: >$log
	: >/tmp/first.log
	create_roles
	pg_restore --list "/backup/$chosen/dump" >/tmp/list || fail RestoreFailed "the list of the backup $chosen cannot be read; see the log of the container data"
	exec 3>/tmp/schemas 4>/tmp/extensions 5>/tmp/others
	while IFS= read -r line; do
		case ${line#*; } in # A number, and the catalog: 2615 has the schemas, and 3079 the extensions.
		'2615 '*) say "$line" >&3 ;;
		'3079 '*) say "$line" >&4 ;;
		*) say "$line" >&5 ;;
		esac
	done </tmp/list
	restore_part /tmp/schemas $log
	listed | note_parts
	create_extensions /tmp/extensions
	list_configuration || fail RestoreFailed 'the extensions could not be read; see the log of the container data'
	restore_part /tmp/others /tmp/first.log
	apply_properties setting
	try_again
	listed | note_parts
	apply_properties rights right comment
	check_server
	check_rows
	as_owner sql --command 'set client_min_messages = error' --command analyze || say 'some tables have no statistics yet'
	[ -s $missing ] || rm $log
	{ say "$chosen" && summary; } >/data/restored
}
