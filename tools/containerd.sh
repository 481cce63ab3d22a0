#!/usr/bin/env bash
# Installs the programs that a real node of devcluster needs, if they are missing and the user is root.
set -euo pipefail

readonly packages=(containerd runc containernetworking-plugins nftables xfsprogs)

usage() {
	cat <<END
Usage: tools/containerd.sh [--help]

Installs ${packages[*]} with apt-get, if the programs of one of them are missing. It starts no services.
END
}

case ${1:-} in
'') ;;
-h | --help)
	usage
	exit
	;;
*)
	usage >&2
	exit 2
	;;
esac

missing=()
for program in containerd ctr runc nft mkfs.xfs xfs_growfs /usr/lib/cni/{ptp,host-local,loopback}; do
	command -v "$program" >/dev/null || missing+=("$program")
done
if ((${#missing[@]} == 0)); then
	exit
fi
if ((EUID != 0)); then
	echo "containerd.sh: missing: ${missing[*]}; as root: apt-get install --no-install-recommends ${packages[*]}" >&2
	exit 1
fi
apt-get update -qq
# A service that starts at the installation would be another containerd.
DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 apt-get install -qq -y --no-install-recommends "${packages[@]}"
