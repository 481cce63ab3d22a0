# Sourced by test.sh and check.sh: runs steps one after the other, each under a heading with the time so far, goes on
# after a failure, and says at the end which steps failed.

failed=()

elapsed() { printf '%d:%02d' $((SECONDS / 60)) $((SECONDS % 60)); }

# step TITLE COMMAND…
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

# in_module FOLDER COMMAND… runs the command in a module's folder. devcluster stands outside of the workspace.
in_module() {
	local module=$1
	shift
	if [[ $module == devcluster ]]; then
		(cd "$module" && GOWORK=off "$@")
	else
		(cd "$module" && "$@")
	fi
}

# modules lists the folders of all modules, the library first.
modules() {
	echo .
	local file
	for file in awslab/go.mod credential/ssm/go.mod operators/*/go.mod tools/go.mod devcluster/go.mod; do
		dirname "$file"
	done
}
