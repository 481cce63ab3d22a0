package volume

import (
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// On a machine without XFS, a volume of a real node is a directory. It is deleted with its content, and nothing else is.
func TestWithoutDisksAVolumeIsADirectory(t *testing.T) {
	t.Parallel()
	c := &controller{directory: t.TempDir()}
	at, err := c.place("pvc-1", resource.MustParse("1Gi"))
	if err != nil {
		t.Fatal(err)
	}
	want := filepath.Join(c.directory, "pvc-1")
	if at.source.Local == nil || at.source.Local.Path != want || at.capacity.String() != "1Gi" || at.affinity == nil {
		t.Fatalf("the volume is %+v, want %s with 1Gi on the node", at, want)
	}
	if info, err := os.Stat(want); err != nil || info.Mode().Perm() != 0o777 {
		t.Errorf("the directory is %v: %v", info, err)
	}
	if err := os.WriteFile(filepath.Join(want, "file"), []byte("data"), 0o600); err != nil {
		t.Fatal(err)
	}
	volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pvc-1"}}
	for path, removed := range map[string]bool{c.directory: false, "/etc": false, want: true} {
		volume.Spec.Local = &corev1.LocalVolumeSource{Path: path}
		if err := c.grow(volume, resource.MustParse("2Gi")); err != nil {
			t.Errorf("grow: %v", err)
		}
		if err := c.remove(volume); err != nil {
			t.Errorf("remove: %v", err)
		}
		if _, err := os.Stat(path); os.IsNotExist(err) != removed {
			t.Errorf("%s is removed: %t, want %t", path, !removed, removed)
		}
	}
}

func TestVolumesOfSimulatedNodesHaveNoFiles(t *testing.T) {
	t.Parallel()
	c := &controller{}
	at, err := c.place("pvc-1", resource.MustParse("1Mi"))
	if err != nil || at.source.HostPath == nil || at.source.HostPath.Path != "/devcluster/volumes/pvc-1" || at.capacity.String() != "1Mi" || at.affinity != nil {
		t.Errorf("the volume is %+v: %v", at, err)
	}
}
