# Sourced by check.sh and lint.sh. Runs steps one after the other under a heading with the elapsed time, continues after a
# failure, and lists the failed steps at the end.

# As in the Makefile, so that both share what Go has compiled.
[[ ${GOFLAGS:-} == *-trimpath* ]] || export GOFLAGS="${GOFLAGS:-} -buildvcs=false -trimpath"

failed=()

elapsed() { printf '%d:%02d' $((SECONDS / 60)) $((SECONDS % 60)); }

# step TITLE COMMAND… runs a step.
step() {
	local title=$1 began=$SECONDS
	shift
	printf '\n== [%s] %s\n' "$(elapsed)" "$title"
	if "$@"; then
		printf -- '-- done in %ds\n' $((SECONDS - began))
	else
		failed+=("$title")
		printf -- '-- FAILED after %ds: %s\n' $((SECONDS - began)) "$title"
	fi
}

finish() {
	if ((${#failed[@]})); then
		printf '\n%d failed in %s:\n' ${#failed[@]} "$(elapsed)"
		printf '  %s\n' "${failed[@]}"
		exit 1
	fi
	printf '\nAll passed in %s.\n' "$(elapsed)"
}

# in_module DIR COMMAND… runs a command in the directory of a module. devcluster is not in the workspace. It gets the compiler flags of build.sh:
# with other flags, go would compile all of Kubernetes again.
in_module() {
	local module=$1 flags=${GOFLAGS:-}
	shift
	if [[ $module == devcluster ]]; then
		flags+=" $(devcluster/build.sh --compiler-flags)"
		(cd "$module" && GOWORK=off GOFLAGS=$flags "$@")
	else
		(cd "$module" && "$@")
	fi
}

# modules lists the directories of all modules, the library first.
modules() {
	echo .
	local file
	for file in cmd/einmal/go.mod awslab/go.mod bench/go.mod credential/ssm/go.mod operators/*/go.mod tools/go.mod devcluster/go.mod; do
		dirname "$file"
	done
}
