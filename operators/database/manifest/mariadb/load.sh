# shellcheck shell=sh
# Sourced by server.sh: fills the new database with the backup that common.sh has chosen.

# can_load VERSION reports whether a server of this major version can read a backup.
can_load() { [ "$1" = "$MAJOR" ]; }

# as_owner replaces the definers of views, triggers, routines and events with the owner of the database, who creates them. Other users do not exist. In a
# dump, a row of a table begins with a parenthesis, so that it is no such line.
as_owner() {
	name='`([^`]|``)*`' # A user or a role.
	sed -E -e "s/^CREATE DEFINER=$name(@$name)? /CREATE /" -e "s,^(/\*![0-9]+ CREATE\*/) /\*![0-9]+ DEFINER=$name(@$name)?\*/ ,\1 ," \
		-e "s,^(/\*!50013) DEFINER=$name(@$name)? (SQL SECURITY ),\1 \5,"
}

# restore fills the new database. The owner makes everything: what a function does would be done by the administrator otherwise. A dump cannot make the client
# execute commands or read files: in binary mode the client has no commands, and the option --sandbox of newer clients does the same.
restore() {
	say "restoring the backup $chosen"
	{ gzip -dc "/backup/$chosen/dump" || say 'the dump cannot be read;'; } | as_owner |
		MYSQL_PWD=$app mariadb --no-defaults --binary-mode --loose-sandbox --skip-local-infile --user "$APP_USERNAME" --default-character-set=utf8mb4 --max-allowed-packet=1G "$APP_DATABASE" ||
		fail RestoreFailed "the backup $chosen could not be restored; see the log of the container data"
	say "$chosen" >/data/restored
}
