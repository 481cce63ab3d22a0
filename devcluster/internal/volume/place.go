package volume

import (
	"os"
	"path"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/einmal-operators/einmal/devcluster/internal/disk"
	"github.com/einmal-operators/einmal/devcluster/internal/realnode"
)

// pathPrefix is the directory in the host paths of volumes of simulated nodes. It is
// never created.
const pathPrefix = "/devcluster/volumes"

// place is where a volume is, and how large.
type place struct {
	source   corev1.PersistentVolumeSource
	affinity *corev1.VolumeNodeAffinity
	capacity resource.Quantity
}

// place creates what is behind a volume: nothing on simulated nodes, otherwise a disk of
// its size or, on a machine that cannot have disks, a directory. It does nothing if that
// exists.
func (c *controller) place(name string, requested resource.Quantity) (place, error) {
	if c.directory == "" {
		unset := corev1.HostPathUnset
		return place{capacity: requested, source: corev1.PersistentVolumeSource{
			HostPath: &corev1.HostPathVolumeSource{Path: path.Join(pathPrefix, name), Type: &unset},
		}}, nil
	}
	at := place{capacity: requested, affinity: onRealNode()}
	if !c.sized {
		directory := filepath.Join(c.directory, name)
		at.source.Local = &corev1.LocalVolumeSource{Path: directory}
		if err := os.MkdirAll(directory, 0o700); err != nil {
			return place{}, err
		}
		// A volume has no owner: the kubelet sets the group that a Pod asks for.
		return at, os.Chmod(directory, 0o777) //nolint:gosec // The directories above it have mode 0700.
	}
	if smallest := resource.NewQuantity(disk.Smallest, resource.BinarySI); requested.Cmp(*smallest) < 0 {
		at.capacity = *smallest
	}
	at.source.Local = &corev1.LocalVolumeSource{Path: c.disks().Data(name)}
	return at, c.disks().Create(name, requested.Value())
}

func onRealNode() *corev1.VolumeNodeAffinity {
	return &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{{
			Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{realnode.Name},
		}},
	}}}}
}

// grow grows what is behind a volume to a size.
func (c *controller) grow(volume *corev1.PersistentVolume, size resource.Quantity) error {
	if !c.onDisk(volume) {
		return nil
	}
	return c.disks().Grow(volume.Name, size.Value())
}

// remove deletes what is behind a volume.
func (c *controller) remove(volume *corev1.PersistentVolume) error {
	if c.onDisk(volume) {
		return c.disks().Remove(volume.Name)
	}
	if local := volume.Spec.Local; local != nil && local.Path == filepath.Join(c.directory, volume.Name) {
		return os.RemoveAll(local.Path)
	}
	return nil
}

// onDisk reports whether a volume is a disk. A volume of an earlier start can be a
// directory.
func (c *controller) onDisk(volume *corev1.PersistentVolume) bool {
	return c.directory != "" && volume.Spec.Local != nil && volume.Spec.Local.Path == c.disks().Data(volume.Name)
}

func (c *controller) disks() disk.Folder { return disk.Folder(c.directory) }
