#!/usr/bin/env bash
# Finds terraform, and builds the provider that a test of operators/tenant runs it with, once, into the user's cache.
set -euo pipefail

readonly version=v1.19.0

usage() {
	cat <<END
Usage: tools/terraform.sh [--help]

Prints two lines, the program terraform and the folder of the provider gavinbunney/kubectl $version. The provider is built from its
sources, which takes a minute or two, the first time; then it is in \${XDG_CACHE_HOME:-~/.cache}/einmal.

Where one of them cannot be had, it says so on standard error, and exits with 3: then the test of terraform shows nothing.
END
}

# without REASON ends with what is not shown then.
without() {
	printf '\n**** NO TERRAFORM HERE: %s\n**** So it is NOT shown that "terraform apply" keeps the credentials of a Tenant.\n\n' "$1" >&2
	exit 3
}

main() {
	case ${1:-} in
	-h | --help) usage && return ;;
	'') ;;
	*) printf 'terraform.sh: unknown argument %s; see tools/terraform.sh --help\n' "$1" >&2 && return 2 ;;
	esac
	local program folder fresh
	program=$(command -v terraform) || without "there is no program terraform on the PATH."
	folder=${XDG_CACHE_HOME:-$HOME/.cache}/einmal/terraform-provider-kubectl-$version
	if [[ ! -x $folder/terraform-provider-kubectl ]]; then
		echo "Building terraform's provider gavinbunney/kubectl $version: a minute or two, once" >&2
		mkdir -p "$(dirname "$folder")"
		fresh=$(mktemp -d "$folder.XXXXXX")
		if ! (cd / && GOWORK=off GOFLAGS='' GOBIN=$fresh go install "github.com/gavinbunney/terraform-provider-kubectl@$version") >"$fresh/log" 2>&1; then
			tail -n 5 "$fresh/log" >&2
			rm -rf "$fresh"
			without "its provider gavinbunney/kubectl cannot be built."
		fi
		mkdir -p "$folder"
		mv "$fresh/terraform-provider-kubectl" "$folder/"
		rm -rf "$fresh"
	fi
	printf '%s\n%s\n' "$program" "$folder"
}

main "$@"
