package realnode

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Isolation starts a process as the first one of new namespaces.
func Isolation() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{
		Setpgid:    true,
		Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS,
	}
}

// isolate gives the namespaces of this process their own mounts, host name and network.
func isolate(l Layout) error {
	for _, step := range []struct {
		what string
		do   func() error
	}{
		{"mount file systems", func() error { return mountAll(l) }},
		{"copy kernel settings", copySettings},
		{"set the host name", func() error { return unix.Sethostname([]byte(Name)) }},
		{"set up the network", setUpNetwork},
		{"create cgroups", func() error { return makeCgroup(cgroupOf(l.Data)) }},
	} {
		if err := step.do(); err != nil {
			return fmt.Errorf("%s: %w", step.what, err)
		}
	}
	return nil
}

// mountAll separates the mounts from those of the machine. Programs of the node find their data in the usual places below /var and /run, which are
// not those of the machine. The data directory is where it was, also if it is below one of them.
func mountAll(l Layout) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	// Volumes that a container mounts must reach others.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SHARED, ""); err != nil {
		return fmt.Errorf("share mounts: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	data, err := unix.Open(l.Data, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open %s: %w", l.Data, err)
	}
	defer func() { _ = unix.Close(data) }() // It was only read.
	if err := unix.Mount("run", "/run", "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=755"); err != nil {
		return fmt.Errorf("mount /run: %w", err)
	}
	if err := mountVar(); err != nil {
		return err
	}
	original := fmt.Sprintf("/proc/self/fd/%d", data)
	if strings.HasPrefix(l.Data, "/run/") || strings.HasPrefix(l.Data, "/var/") {
		if err := bind(original, l.Data); err != nil {
			return err
		}
	}
	for _, place := range places() {
		if err := os.MkdirAll(filepath.Join(original, "node", place.name), 0o700); err != nil {
			return err
		}
		if err := bind(filepath.Join(original, "node", place.name), place.path); err != nil {
			return err
		}
	}
	return unix.Chdir(l.Data)
}

// places are the directories of the node's programs, and their names in the node's directory.
func places() []struct{ name, path string } {
	return []struct{ name, path string }{
		{"containerd", "/var/lib/containerd"},
		{"kubelet", "/var/lib/kubelet"},
		{"pods", "/var/log/pods"},
	}
}

// mountVar lets the node write below /var without changing the machine's. What it writes elsewhere than in places is lost at the end.
func mountVar() error {
	upper, work := "/run/var/upper", "/run/var/work"
	for _, dir := range []string{upper, work} {
		if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // Containers of other users read below /var.
			return err
		}
	}
	options := "lowerdir=/var,upperdir=" + upper + ",workdir=" + work
	if err := unix.Mount("overlay", "/var", "overlay", 0, options); err != nil {
		return fmt.Errorf("mount /var: %w", err)
	}
	return nil
}

// bind shows a directory in another place, which it creates.
func bind(from, to string) error {
	if err := os.MkdirAll(to, 0o755); err != nil { //nolint:gosec // As above.
		return err
	}
	if err := unix.Mount(from, to, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("mount %s: %w", to, err)
	}
	return nil
}

// copySettings puts copies in the place of the kernel settings that the kubelet changes and that no namespace separates.
func copySettings() error {
	for _, name := range []string{"vm/overcommit_memory", "kernel/panic", "kernel/panic_on_oops", "kernel/keys/root_maxkeys", "kernel/keys/root_maxbytes"} {
		path, copied := filepath.Join("/proc/sys", name), filepath.Join("/run/settings", name)
		content, err := os.ReadFile(path)
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			return err
		}
		if err := os.MkdirAll(filepath.Dir(copied), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(copied, content, 0o600); err != nil {
			return err
		}
		if err := unix.Mount(copied, path, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("mount %s: %w", path, err)
		}
	}
	return nil
}

// setUpNetwork gives the loopback interface the address of the node.
func setUpNetwork() error {
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return err
	}
	if err := netlink.LinkSetUp(lo); err != nil {
		return err
	}
	address, err := netlink.ParseAddr(Address + "/32")
	if err != nil {
		return err
	}
	if err := netlink.AddrAdd(lo, address); err != nil {
		return fmt.Errorf("add the address %s: %w", Address, err)
	}
	_, services, err := net.ParseCIDR(ServiceRange)
	if err != nil {
		return err
	}
	// A process of the node that connects to a Service needs a route before kube-proxy's rules translate the address.
	route := &netlink.Route{LinkIndex: lo.Attrs().Index, Dst: services, Src: address.IP}
	if err := netlink.RouteAdd(route); err != nil {
		return fmt.Errorf("add the route to %s: %w", ServiceRange, err)
	}
	return os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o644) //nolint:gosec // It exists with its mode.
}
