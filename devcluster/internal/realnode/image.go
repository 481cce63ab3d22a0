package realnode

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

const (
	containerdSocket = "/run/containerd/containerd.sock"
	// criNamespace is where containerd keeps the images and containers of a kubelet.
	criNamespace = "k8s.io"
	digestPrefix = "sha256:"
)

// LoadImages loads the images of an OCI or docker archive into the node whose first process has a process ID, and returns their names. The caller
// must be root.
func LoadImages(ctx context.Context, pid int, archive string) ([]string, error) {
	socket := socketOf(pid)
	before, err := imagesAt(ctx, socket)
	if err != nil {
		return nil, err
	}
	out, err := ctrAt(ctx, socket, nil, "images", "import", archive)
	if err != nil {
		return nil, fmt.Errorf("load %s: %s", archive, cmp.Or(out, err.Error()))
	}
	after, err := imagesAt(ctx, socket)
	if err != nil {
		return nil, err
	}
	var names []string
	for name, digest := range after {
		if strings.Contains(out, name) || before[name] != digest {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil, errors.New("load " + archive + ": it names no image")
	}
	return names, nil
}

// Images returns the sorted names of the images of the node whose first process has a process ID, without the one that devcluster makes for itself.
// The caller must be root.
func Images(ctx context.Context, pid int) ([]string, error) {
	images, err := imagesAt(ctx, socketOf(pid))
	delete(images, pauseImage)
	return slices.Sorted(maps.Keys(images)), err
}

// socketOf returns containerd's socket in a node, which has its own /run.
func socketOf(pid int) string {
	return filepath.Join("/proc", strconv.Itoa(pid), "root", containerdSocket)
}

// imagesAt returns the digest of each image by name.
func imagesAt(ctx context.Context, socket string) (map[string]string, error) {
	out, err := ctrAt(ctx, socket, nil, "images", "list")
	if err != nil {
		return nil, fmt.Errorf("list images: %w: %s", err, out)
	}
	images := map[string]string{}
	for line := range strings.Lines(out) {
		const name, digest, columns = 0, 2, 3
		fields := strings.Fields(line)
		// Each image is also listed by its digest.
		if len(fields) > columns && strings.HasPrefix(fields[digest], digestPrefix) && !strings.HasPrefix(fields[name], digestPrefix) {
			images[fields[name]] = fields[digest]
		}
	}
	return images, nil
}

// ctrAt runs containerd's own client and returns what it printed.
func ctrAt(ctx context.Context, socket string, input []byte, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "ctr", append([]string{"--address", socket, "--namespace", criNamespace}, args...)...) //nolint:gosec // The user names the archive.
	if input != nil {
		cmd.Stdin = bytes.NewReader(input)
	}
	out, err := cmd.CombinedOutput()
	return string(bytes.TrimSpace(out)), err
}
