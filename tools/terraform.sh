#!/usr/bin/env bash
# Finds terraform and builds the provider that a test of operators/tenant needs. The provider is cached.
set -euo pipefail

readonly version=v1.19.0

usage() {
	cat <<END
Usage: tools/terraform.sh [--help]

Prints two lines: the path of terraform and the directory of the provider gavinbunney/kubectl $version. The first run builds the provider
from its sources in a minute or two and caches it in \${XDG_CACHE_HOME:-~/.cache}/einmal.

If terraform or the provider is unavailable, it prints the reason to standard error and exits with 3. The test with terraform then
checks nothing.
END
}

# unavailable REASON prints what is not tested and exits.
unavailable() {
	printf '\n**** TERRAFORM IS UNAVAILABLE: %s\n**** NOT tested: whether "terraform apply" keeps the credentials of a Tenant.\n\n' "$1" >&2
	exit 3
}

main() {
	case ${1:-} in
	-h | --help) usage && return ;;
	'') ;;
	*) printf "terraform.sh: unexpected argument %s; see 'tools/terraform.sh --help'\n" "$1" >&2 && return 2 ;;
	esac
	local program folder fresh
	program=$(command -v terraform) || unavailable "terraform is not on the PATH"
	folder=${XDG_CACHE_HOME:-$HOME/.cache}/einmal/terraform-provider-kubectl-$version
	if [[ ! -x $folder/terraform-provider-kubectl ]]; then
		echo "Building the terraform provider gavinbunney/kubectl $version; takes a minute or two, only the first time" >&2
		mkdir -p "$(dirname "$folder")"
		fresh=$(mktemp -d "$folder.XXXXXX")
		if ! (cd / && GOWORK=off GOFLAGS='' GOBIN=$fresh go install "github.com/gavinbunney/terraform-provider-kubectl@$version") >"$fresh/log" 2>&1; then
			tail -n 5 "$fresh/log" >&2
			rm -rf "$fresh"
			unavailable "building its provider gavinbunney/kubectl failed; see the output above"
		fi
		mkdir -p "$folder"
		mv "$fresh/terraform-provider-kubectl" "$folder/"
		rm -rf "$fresh"
	fi
	printf '%s\n%s\n' "$program" "$folder"
}

main "$@"
