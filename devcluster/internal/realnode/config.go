package realnode

import (
	"embed"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"text/template"

	"github.com/einmal-operators/einmal/devcluster/internal/dns"
)

const (
	pluginDir = "/usr/lib/cni"
	// pauseImage is the name of the image whose container holds the namespaces of a Pod.
	pauseImage = "devcluster.local/pause:1"
)

//go:embed config
var configs embed.FS

// Layout says where the files of a node are.
type Layout struct {
	// Data is the data directory of the cluster, an absolute path.
	Data string
	// Pki is the directory of certificates and kubeconfigs.
	Pki string
}

// values are what the templates of the configuration use.
type values struct {
	// Pki is as in Layout. Dir has the configuration and the data of the node.
	Pki, Dir, PluginDir, Name, Address, PodRange, Cgroup, PauseImage, Egress string
	// DNS is the address of the DNS server, and Domain the domain of the cluster.
	DNS, Domain string
}

// dir is the directory of the node's files in the data directory.
func (l Layout) dir() string { return filepath.Join(l.Data, "node") }

func (l Layout) config(name string) string { return filepath.Join(l.dir(), name) }

// EgressFile is the configuration with which the API server reaches the node's network.
func (l Layout) EgressFile() string { return l.config("egress.yaml") }

// Volumes is the directory of the volumes.
func (l Layout) Volumes() string { return l.config("volumes") }

// WriteConfig writes the configuration of the node and of the API server's way to it.
func (l Layout) WriteConfig() error {
	all, err := template.ParseFS(configs, "config/*")
	if err != nil {
		return err
	}
	of := values{
		Pki: l.Pki, Dir: l.dir(), PluginDir: pluginDir, Name: Name, Address: Address, PodRange: PodRange,
		Cgroup: cgroupOf(l.Data), PauseImage: pauseImage, Egress: egressSocket,
		DNS: DNSAddress, Domain: dns.Domain,
	}
	for _, one := range all.Templates() {
		path := l.config(one.Name())
		if one.Name() == "cni.conflist" {
			path = l.config(filepath.Join("cni", one.Name()))
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
		if err != nil {
			return err
		}
		if err := one.Execute(file, of); err != nil {
			_ = file.Close() // The first error matters.
			return err
		}
		if err := file.Close(); err != nil {
			return err
		}
	}
	return nil
}

// cgroupOf returns the name of the cgroup in which the containers of a cluster are. Clusters with other data directories have other names.
func cgroupOf(data string) string {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(data)) // It never fails.
	return fmt.Sprintf("devcluster-%08x", hash.Sum32())
}
