#!/bin/sh
# Builds devcluster: devcluster/build.sh OUTPUT
#
# With --compiler-flags it prints the flags that it passes to the compiler. Other
# commands that use the same flags reuse its compiled packages.
#
# It does nothing if OUTPUT is newer than every source. The first build compiles
# all of Kubernetes, which takes minutes, and shows its progress. The result is
# kept in ${XDG_CACHE_HOME:-~/.cache}/einmal, so that other clones of the
# repository with the same sources copy it.
set -eu

if [ $# -ne 1 ]; then
	echo "usage: $0 OUTPUT | --compiler-flags" >&2
	exit 2
fi
# The binary has no debugging information (-s -w), so the compiler need not generate it. The standard library is compiled
# with the default flags, because other builds on this machine share it. With -trimpath, other clones share the rest.
compiler_flags="-trimpath -gcflags=all=-dwarf=false -gcflags=std="
case $1 in
--compiler-flags)
	echo "$compiler_flags"
	exit
	;;
/*) output=$1 ;;
*) output=$PWD/$1 ;;
esac
cd "$(dirname "$0")"
export GOWORK=off

sources() { # finds the sources; arguments are further conditions of find
	find . -name .devcluster -prune -o \
		\( -name '*.go' ! -name '*_test.go' -o -name go.mod -o -name go.sum -o -name build.sh \) "$@" -print
}
if [ -x "$output" ] && [ -z "$(sources -newer "$output" | head -n 1)" ]; then
	exit 0
fi
mkdir -p "$(dirname "$output")"

# The cache has one file for each combination of sources, flags and Go version.
hash() { if command -v sha256sum >/dev/null; then sha256sum; else shasum -a 256; fi; }
contents() {
	go version
	go env GOFLAGS CGO_ENABLED GOOS GOARCH
	sources | LC_ALL=C sort | while read -r file; do
		echo "$file"
		cat "$file"
	done
}
cache=${XDG_CACHE_HOME:-$HOME/.cache}/einmal
cached=$cache/devcluster-$(contents | hash | cut -c 1-16)
if [ -x "$cached" ]; then
	cp "$cached" "$output.new.$$"
	mv "$output.new.$$" "$output"
	echo "built $1 from the cache" >&2
	exit 0
fi

work=$(mktemp -d "${TMPDIR:-/tmp}/devcluster-build.XXXXXX")
new=$output.new.$$
# The temporary files of an interrupted compiler are removed too.
export GOTMPDIR="$work"
child=
finish() {
	if [ -n "$child" ]; then
		kill "$child" 2>/dev/null || :
		wait "$child" 2>/dev/null || :
	fi
	clear_line
	rm -rf "$work" "$new"
}
shown=false
clear_line() {
	if $shown; then printf '\r\033[K' >&2; fi
	shown=false
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

terminal=false
interval=10
if [ -t 2 ]; then
	terminal=true
	interval=1
fi
start=$(date +%s)
reported=$start

elapsed() {
	seconds=$(($(date +%s) - start))
	if [ "$seconds" -ge 60 ]; then
		printf '%dm%02ds' $((seconds / 60)) $((seconds % 60))
	else
		printf '%ds' "$seconds"
	fi
}

# report TEXT shows progress: in place on a terminal, else as a line per interval.
report() {
	now=$(date +%s)
	if [ $((now - reported)) -lt "$interval" ]; then
		return
	fi
	reported=$now
	if $terminal; then
		printf '\r\033[K%s, %s' "$1" "$(elapsed)" >&2
		shown=true
	else
		printf '%s, %s\n' "$1" "$(elapsed)" >&2
	fi
}

# follow FUNCTION waits for the child process. Meanwhile it shows the text that
# the function prints.
follow() {
	while kill -0 "$child" 2>/dev/null; do
		report "$("$1")"
		sleep 0.2 2>/dev/null || sleep 1
	done
	status=0
	wait "$child" || status=$?
	child=
	clear_line
	return "$status"
}

# Download the modules: go list reads the sources of all packages.
downloading() { echo "building devcluster: downloading modules"; }
go list -deps . >"$work/packages" 2>"$work/download" &
child=$!
if ! follow downloading; then
	cat "$work/download" >&2
	echo "build devcluster: downloading modules failed; see the output above" >&2
	exit 1
fi

# The versions that kubectl and the API server report come from go.mod.
kubernetes=$(go list -m -f '{{.Version}}' k8s.io/kubernetes)
built=$(go list -m -f '{{if .Time}}{{.Time.Format "2006-01-02T15:04:05Z"}}{{end}}' k8s.io/kubernetes)
numbers=${kubernetes#v}
major=${numbers%%.*}
minor=${numbers#*.}
minor=${minor%%.*}
# A module has no commit. Its checksum identifies the source as precisely.
commit=$(awk -v v="$kubernetes" '$1 == "k8s.io/kubernetes" && $2 == v { print $3 }' go.sum)
flags="-s -w"
for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
	flags="$flags -X $package.gitVersion=$kubernetes -X $package.gitMajor=$major -X $package.gitMinor=$minor"
	flags="$flags -X $package.gitCommit=$commit -X $package.gitTreeState=archive"
	flags="$flags -X $package.buildDate=${built:-1970-01-01T00:00:00Z}"
done

# With less frequent garbage collection, the compiler uses less CPU and more memory.
export GOGC="${GOGC:-400}"

# Compile and link. go build -v prints the name of each package that it compiles.
total=$(wc -l <"$work/packages" | tr -d ' ')
compiling() {
	echo "building devcluster: $(wc -l <"$work/build" | tr -d ' ') of at most $total packages"
}
: >"$work/build"
# If the binary is up to date, go build does not link it again.
if [ -x "$output" ]; then cp "$output" "$new"; fi
go build -v -buildvcs=auto $compiler_flags -ldflags "$flags" -o "$new" . >"$work/build" 2>&1 &
child=$!
if ! follow compiling; then
	# Print everything except the names of packages.
	grep -vxF -f "$work/packages" "$work/build" >&2 || cat "$work/build" >&2
	echo "build devcluster: compiling failed; see the output above" >&2
	exit 1
fi
# Keep this and the previous program in the cache. Without a writable cache, the build succeeds too.
if mkdir -p "$cache" 2>/dev/null && cp "$new" "$cached.$$" 2>/dev/null; then
	mv "$cached.$$" "$cached"
	find "$cache" -maxdepth 1 -name 'devcluster-*' | xargs ls -t | tail -n +3 | xargs rm -f
else
	rm -f "$cached.$$"
fi
mv "$new" "$output"
echo "built $1 in $(elapsed)" >&2
