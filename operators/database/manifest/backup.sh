#!/bin/sh
# Usage: backup.sh
# Makes a backup of a Database and deletes those that need not be kept. It needs only the programs of the engine, flock and coreutils.
#
# A backup is a folder of /backups with the name of the time when it began, in UTC:
#   dump     the dump of the database, which dump.sh of the engine makes
#   about    the major version of the server, the owner of the database, and the engine, if it is not postgresql, in one line; then what dump.sh adds
#   roles    the names of other roles, a line each
#   sha256   the checksums of these files
# The folder has the suffix .part until it is complete and on the disk.
set -eu
umask 077
# shellcheck disable=SC1091 # It is in the same folder of the ConfigMap.
. /config/dump.sh

say() { printf '%s\n' "$*"; }

# fail REASON MESSAGE ends the container. The operator reads both in the status of the Pod.
fail() {
	say "$1: $2" >&2
	printf '%s: %.900s' "$1" "$2" >/dev/termination-log
	[ -z "$part" ] || rm -rf "$part"
	exit 1
}

# run COMMAND… runs a command, and keeps what it says for a failure.
run() { "$@" 2>/tmp/errors || { cat /tmp/errors >&2; return 1; }; }

# why prints what was wrong: the first line about an error.
why() {
	while read -r line; do
		case $line in
		*[Ee]rror* | *ERROR* | *FATAL:* | *"Couldn't execute"*) break ;;
		esac
	done </tmp/errors
	say "${line:-see the log of the Pod}"
}

# older NAME OTHER reports whether the first backup is older.
older() { [ "$(number "$1")" -lt "$(number "$2")" ]; }

# number NAME prints the time of a backup as a number.
number() {
	time=${1%Z}
	say "${time%T*}${time#*T}"
}

# discard NAME deletes a backup. One that is not deleted wholly is not taken for a backup.
discard() {
	mv "/backups/$1" "/backups/$1.part"
	rm -rf "/backups/$1.part"
	say "deleted the backup $1"
}

# retain deletes the backups that are too many or too old. The newest stays.
retain() {
	cd /backups
	set -- *Z
	while [ $# -gt 1 ]; do
		if [ -n "${KEEP_COUNT:-}" ]; then
			[ $# -gt "$KEEP_COUNT" ] || return 0
		else
			older "$1" "$(date -u -d "-$KEEP_DAYS days" +%Y%m%dT%H%M%SZ)" || return 0
		fi
		discard "$1"
		shift
	done
}

part=
[ -w /backups ] || fail VolumeNotWritable "user $(id -u) cannot write to the volume of the backups"
touch /backups/lock 2>/tmp/errors || fail BackupFailed "$(cat /tmp/errors)"
exec 9>>/backups/lock
flock -w 3600 9 || fail BackupRunning 'another backup has been running for an hour'
rm -rf /backups/*.part

name=$(date -u +%Y%m%dT%H%M%SZ)
until [ ! -e "/backups/$name" ]; do
	sleep 1
	name=$(date -u +%Y%m%dT%H%M%SZ)
done
part=/backups/$name.part
mkdir "$part" 2>/tmp/errors || fail BackupFailed "$(cat /tmp/errors)"

# A standby that conflicts with what the primary does ends the dump.
source=standby
if [ -z "${STANDBYS:-}" ] || ! dump "$STANDBYS"; then
	[ -z "${STANDBYS:-}" ] || say 'dumping the primary, because no standby has made a dump'
	source=primary
	dump "$PRIMARY" || fail BackupFailed "$(why)"
fi
check_dump || fail BackupInvalid "$(why)"
(cd "$part" && sha256sum dump about roles >sha256) || fail BackupFailed 'the checksums could not be written'
sync
mv "$part" "/backups/$name"
sync
retain
size=$(stat -c %s "/backups/$name/dump")
say "made the backup $name of $size bytes from a $source"
printf '%s %s %s' "$name" "$size" "$source" >/dev/termination-log
