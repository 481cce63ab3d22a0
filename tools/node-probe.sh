#!/usr/bin/env bash
# Prints whether this machine can run a Kubernetes node with real containers: rights, capabilities, cgroups, namespaces, mounts, network, devices, and
# the versions of the packages that such a node needs. It changes nothing: whatever a check makes is in namespaces that end with the check,
# or is removed again. It always succeeds.
set -uo pipefail

readonly packages=(containerd runc containernetworking-plugins nftables xfsprogs iproute2 util-linux)

usage() {
	cat <<END
Usage: tools/node-probe.sh [--help]

Prints one line for each check: its name, then "yes" or "no" with the first line of the error. Checks that make something need root.
END
}

say() { printf '%-34s %s\n' "$1" "$2"; }

# try NAME COMMAND... prints whether a command succeeds, and its first line of output.
try() {
	local name=$1 said
	shift
	if said=$(timeout 20 "$@" 2>&1 </dev/null); then
		say "$name" "yes ${said%%$'\n'*}"
	else
		say "$name" "no: ${said%%$'\n'*}"
	fi
}

# apart NAME SCRIPT tries a script in namespaces of its own, in an empty directory on a tmpfs.
apart() { try "$1" unshare --mount --net --ipc --uts --pid --fork --mount-proc sh -ec "mount -t tmpfs tmpfs /mnt && cd /mnt && $2"; }

rights() {
	say "user" "$(id -un) ($(id -u))"
	say "kernel" "$(uname -srm)"
	say "system" "$(sed -n 's/^PRETTY_NAME=//p' /etc/os-release) with $(cat /proc/1/comm) as process 1"
	say "processors, memory" "$(nproc), $(awk '/^MemTotal/ { print int($2 / 1024) " MiB" }' /proc/meminfo)"
	say "capabilities" "$(sed -n 's/^CapEff:\t//p' /proc/self/status) (bounding $(sed -n 's/^CapBnd:\t//p' /proc/self/status))"
	say "no new privileges, seccomp" "$(sed -n 's/^NoNewPrivs:\t//p; s/^Seccomp:\t//p' /proc/self/status | tr '\n' ' ')"
	say "security modules" "$(cat /sys/kernel/security/lsm 2>/dev/null || echo unknown)"
	try "lower the OOM score" sh -c 'echo -500 >/proc/self/oom_score_adj'
}

cgroups() {
	local name
	say "cgroup file systems" "$(awk '$3 ~ /^cgroup/ { print $3 ":" $2 }' /proc/mounts | tr '\n' ' ')"
	say "controllers of cgroup v2" "$(cat /sys/fs/cgroup/cgroup.controllers /sys/fs/cgroup/unified/cgroup.controllers 2>/dev/null | tr '\n' ' ')"
	for name in . cpu cpuacct cpuset memory devices freezer blkio pids systemd unified; do
		[[ -d /sys/fs/cgroup/$name ]] || continue
		try "make a cgroup in $name" sh -c "mkdir /sys/fs/cgroup/$name/node-probe && rmdir /sys/fs/cgroup/$name/node-probe"
	done
}

namespaces() {
	apart "namespaces" 'echo mount, network, ipc, uts, pid'
	try "user namespace" unshare --user --map-root-user true
	apart "overlay mount" 'mkdir l u w m && mount -t overlay -o lowerdir=l,upperdir=u,workdir=w overlay m'
	apart "bind mount" 'mkdir a b && mount --bind a b'
	apart "shared propagation" 'mkdir a && mount --bind a a && mount --make-rshared a'
	apart "chroot and pivot_root" 'mkdir n && mount -t tmpfs t n && mkdir n/old && cd n && pivot_root . old'
}

network() {
	apart "bridge and veth" 'ip link set lo up && ip link add br0 type bridge && ip link add veth0 type veth peer name veth1 && ip link set veth0 master br0'
	apart "forwarding in a namespace" 'echo 1 >/proc/sys/net/ipv4/ip_forward && cat /proc/sys/net/ipv4/ip_forward'
	apart "nftables maps and numgen" 'nft "add table ip t; add chain ip t n { type nat hook output priority -100; };
		add map ip t m { type ipv4_addr . inet_proto . inet_service : verdict; }; add rule ip t n ip daddr . meta l4proto . th dport vmap @m;
		add chain ip t x; add rule ip t x numgen random mod 2 vmap { 0 : drop, 1 : accept }; add rule ip t x fib daddr type local accept"'
	apart "nftables masquerade" 'nft "add table ip t; add chain ip t p { type nat hook postrouting priority 100; }; add rule ip t p masquerade fully-random"'
}

devices() {
	try "loop device" sh -c 'f=$(mktemp) && truncate -s 16M "$f" && d=$(losetup -f --show "$f") && losetup -d "$d" && rm "$f" && echo "$d"'
	try "file system xfs" grep -w xfs /proc/filesystems
	apart "make a device node" 'mknod n c 1 3'
	say "/dev/kmsg, /dev/fuse" "$(ls /dev/kmsg /dev/fuse 2>&1 | tr '\n' ' ')"
	say "inotify instances, watches" "$(cat /proc/sys/fs/inotify/max_user_instances /proc/sys/fs/inotify/max_user_watches | tr '\n' ' ')"
}

versions() {
	LC_ALL=C apt-cache policy "${packages[@]}" 2>&1 |
		awk '/^[^ ]/ { name = $1 } /^  (Installed|Candidate):/ { say[name] = say[name] " " $1 " " $2 }
			END { for (name in say) printf "package %-30s%s\n", name, say[name] }' | sort
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
rights
cgroups
namespaces
network
devices
versions
exit 0
