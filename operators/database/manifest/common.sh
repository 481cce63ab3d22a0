# shellcheck shell=sh
# Sourced by server.sh of each engine. The variable engine is what the spec calls it, software its name in messages, flag the flag of the operator with its
# image, volume the file that einmal.volume() reads, and scripts the folder with the scripts.

say() { printf '%s\n' "$*"; }

# fail REASON MESSAGE ends the container. The operator reads both in the status of the Pod.
fail() {
	say "$1: $2" >&2
	printf '%s' "$1: $2" >/dev/termination-log
	exit 1
}

# grant prints what the operator says of this Pod, without its uid, or nothing.
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

# await_grant waits until the operator says what this Pod is.
await_grant() {
	granted=$(grant)
	[ -n "$granted" ] || say 'waiting until the operator says whether this Pod may accept writes or is a standby'
	while [ -z "$granted" ]; do
		sleep 0.2
		granted=$(grant)
	done
	say "the operator says: $granted"
}

# lock keeps a second Pod from using the volume. The files of a server do not, because processes in containers can have equal IDs.
lock() {
	[ -w /data ] || fail VolumeNotWritable "user $(id -u) cannot write to the volume"
	exec 9>>/data/lock
	flock -w 30 9 || fail VolumeInUse 'another Pod uses the volume'
}

# password NAME prints the password of a Secret.
password() {
	[ -s "/secret/$1" ] || fail CredentialsMissing "the Secret with the password of $1 does not exist"
	text=$(cat "/secret/$1")
	case $text in
	*[!A-Za-z0-9]*) fail CredentialsInvalid "the password of $1 must consist of letters and digits" ;;
	esac
	say "$text"
}

# check_versions IMAGE DATA compares the major versions of the image and of the data in the volume, which is "" if there is none, with that of the spec.
check_versions() {
	[ "$1" = "$MAJOR" ] || fail VersionMismatch "the image has $software $1, not $MAJOR: correct spec.image, or the operator's flag $flag"
	[ "${2:-$MAJOR}" = "$MAJOR" ] || fail VersionMismatch "the volume holds data of version $2, not $MAJOR: restore the volume, or set spec.version to $2"
}

# pin TO copies the scripts, so that an upgrade of the operator changes none of a Pod that runs.
pin() {
	mkdir -p "$1"
	for one in "$scripts"/*.sh "$scripts"/*.sql; do
		[ ! -e "$one" ] || cp "$one" "$1/"
	done
}

# choose_backup sets the backup of the folder /backup that the new database begins with, if there is one, and checks it. Backups are made by backup.sh.
# RESTORE is the name of one, or "newest", and RESTORE_FROM the place of all, for messages.
choose_backup() {
	[ -n "${RESTORE:-}" ] || return 0
	# shellcheck disable=SC1091 # The script load.sh of the engine is in the same folder.
	. "$scripts/load.sh"
	chosen='' names=''
	for one in /backup/*Z; do
		[ ! -e "$one/dump" ] || chosen=${one##*/} names="$names ${one##*/}"
	done
	[ -n "$chosen" ] || fail RestoreFailed "there is no backup in $RESTORE_FROM"
	[ "$RESTORE" = newest ] || chosen=$RESTORE
	[ -e "/backup/$chosen/dump" ] || fail RestoreFailed "there is no backup $chosen in $RESTORE_FROM; there are:$names"
	say "checking the backup $chosen"
	(cd "/backup/$chosen" && sha256sum --check --quiet sha256) || fail RestoreFailed "the backup $chosen is damaged, because its checksum is another one"
	read -r version owner made_by <"/backup/$chosen/about"
	[ "${made_by:-postgresql}" = "$engine" ] || fail RestoreFailed "the backup $chosen is one of engine ${made_by:-postgresql}, not $engine"
	can_load "$version" || fail RestoreFailed "the backup $chosen is one of $software $version, which $MAJOR cannot read"
	[ "$owner" = "$APP_USERNAME" ] || fail RestoreFailed "the backup $chosen is one of the user $owner: create the Database with this spec.auth.username"
}

# report_restored says which backup the database was filled with. RESTORE is set until the operator knows that.
report_restored() {
	[ -n "${RESTORE:-}" ] || return 0
	[ -e /data/restored ] || fail RestoreFailed 'the volume holds a database already, and nothing is restored over it: remove spec.bootstrap'
	printf 'Restored: %s' "$(cat /data/restored)" >/dev/termination-log
}

# begin waits until the server may start. A Pod that has restored a backup waits for its end.
begin() {
	[ -z "${RESTORE:-}" ] || say 'the backup is restored; the operator replaces this Pod with one that does not use the volume of the backup'
	while [ -n "${RESTORE:-}" ]; do sleep 0.2; done
	lock
	rm -rf /data/fetched # The backup that the database began with, if it was fetched from a bucket.
	await_grant
}

# measure writes the size of the volume and what is free of it, in KiB.
measure() {
	df -kP /data | while read -r _ size _ free _; do printf '%s %s\n' "$size" "$free"; done | tail -n 1 >"$volume.new"
	chmod a+r "$volume.new"
	mv "$volume.new" "$volume"
}

# await_end waits for the end of the server, and sets its code.
await_end() {
	code=0
	while kill -0 "$pid" 2>/dev/null; do
		wait "$pid" && code=0 || code=$?
	done
	say "the server ended with $code"
	measure
}

# check_room explains that a server has failed because its volume is full: it needs room for its next log.
check_room() {
	read -r size free <"$volume"
	[ "$code" = 0 ] || [ "$free" -gt 20480 ] || fail VolumeFull "$((free / 1024)) of $((size / 1024)) MiB are free"
}

# main COMMAND calls the function of a command.
main() {
	case ${1:-} in
	data) data ;;
	server) server ;;
	*)
		say 'usage: server.sh data | server' >&2
		exit 2
		;;
	esac
}
