# Sourced by test.sh.

# share_control_plane starts bin/devcluster and sets the variables with which tests find it. It stops with the script, also if that is killed.
share_control_plane() {
	local line folder
	[[ -z ${EINMAL_TEST_KUBECONFIG:-} ]] || return 0
	folder=$(mktemp -d)
	coproc control_plane { exec bin/devcluster up --data "$folder" --exit-with-fd 0 2>"$folder/log"; }
	trap 'stop_control_plane '"$folder" EXIT
	while read -r line <&"${control_plane[0]}"; do
		if [[ $line == "export KUBECONFIG="* ]]; then
			eval "${line/KUBECONFIG/EINMAL_TEST_KUBECONFIG}"
			return
		fi
	done
	cat "$folder/log"
	return 1
}

stop_control_plane() {
	exec {control_plane[1]}>&- || true
	wait "$control_plane_PID" || true
	rm -rf "$1"
}
