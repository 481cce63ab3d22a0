# shellcheck shell=sh
# Sourced by server.sh: fills the new database with the backup that common.sh has chosen.

# can_load VERSION reports whether a server of this major version can read a backup.
can_load() { [ "$1" -le "$MAJOR" ]; }

# restore_part LIST USER restores the listed parts of the backup as a user. It ends with the first error.
restore_part() {
	{
		LC_ALL=C pg_restore --verbose --no-owner --username "$2" --dbname "$APP_DATABASE" --use-list "$1" "/backup/$chosen/dump" 2>&1 || say "pg_restore ended with $?"
	} | until_error || fail RestoreFailed "the backup $chosen could not be restored; see the log of the container data"
}

# until_error prints what pg_restore says, up to the end of the first error. A pg_restore of PostgreSQL 17 or later sets a parameter that an older server
# does not know. This error has no effect, and --exit-on-error would end with it.
until_error() {
	harmless='' failed=''
	while IFS= read -r line; do
		case "$failed$line" in
		'pg_restore: error: '*'parameter "transaction_timeout"') harmless=1 ;;
		'pg_restore: error: '*) failed='an error: ' ;;
		'an error: pg_restore: '*) break ;;
		'pg_restore ended with 1') [ -n "$harmless" ] || failed=1 ;;
		'pg_restore ended with '*) failed=1 ;;
		esac
		say "$line"
	done
	[ -z "$failed" ]
}

# restore fills the new database. The superuser makes extensions only. The owner of the database makes all else: a function that the owner has used in a
# constraint, for example, would run as the superuser otherwise.
restore() {
	say "restoring the backup $chosen"
	while read -r role; do
		psql --no-psqlrc --quiet --set ON_ERROR_STOP=1 --set role="$role" --dbname postgres <<-'SQL' ||
			select format('create role %I', :'role') where not exists (select from pg_roles where rolname = :'role') \gexec
		SQL
			fail RestoreFailed "the role $role could not be created; see the log of the container data"
	done <"/backup/$chosen/roles"
	pg_restore --list "/backup/$chosen/dump" >/tmp/list
	exec 3>/tmp/schemas 4>/tmp/extensions 5>/tmp/others
	while IFS= read -r line; do
		case ${line#*; } in # A number, and the catalog: 2615 has the schemas, and 3079 the extensions.
		'2615 '*) say "$line" >&3 ;;
		'3079 '* | '0 0 COMMENT - EXTENSION '*) say "$line" >&4 ;;
		*) say "$line" >&5 ;;
		esac
	done </tmp/list
	restore_part /tmp/schemas "$APP_USERNAME"
	restore_part /tmp/extensions postgres
	restore_part /tmp/others "$APP_USERNAME"
	psql --no-psqlrc --quiet --username "$APP_USERNAME" --dbname "$APP_DATABASE" --command analyze
	say "$chosen" >/data/restored
}
