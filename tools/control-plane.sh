# Sourced by test.sh.

# share_control_plane starts devcluster and sets the variable with which tests find it, unless the variable is set already. devcluster stops with
# the script, even if the script is killed, because it exits at the end of its standard input.
share_control_plane() {
	local line
	[[ -z ${EINMAL_TEST_KUBECONFIG:-} ]] || return 0
	control_plane_folder=$(mktemp -d)
	trap stop_control_plane EXIT
	coproc control_plane { exec "$EINMAL_DEVCLUSTER" up --data "$control_plane_folder/data" --exit-with-fd 0 2>"$control_plane_folder/log"; }
	control_plane_process=$! # Bash unsets its own variable when the process ends.
	while read -r line <&"${control_plane[0]}"; do
		if [[ $line == 'export KUBECONFIG='* ]]; then
			export EINMAL_TEST_KUBECONFIG=$control_plane_folder/data/kubeconfig
			return 0
		fi
	done
	cat "$control_plane_folder/log"
	echo "the control plane ended before it was ready; each test starts its own"
	return 1
}

stop_control_plane() {
	kill "$control_plane_process" 2>/dev/null || true
	wait "$control_plane_process" || true
	rm -rf "$control_plane_folder"
}
