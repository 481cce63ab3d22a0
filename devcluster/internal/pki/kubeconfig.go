package pki

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// header is the first line of every kubeconfig that devcluster writes. A file
// without it belongs to the user and must not be overwritten.
const header = "# Written by devcluster; it is replaced at every start.\n"

const kubeconfigFormat = header + `apiVersion: v1
kind: Config
current-context: devcluster
clusters:
- name: devcluster
  cluster:
    server: %[1]s
    certificate-authority-data: %[2]s
contexts:
- name: devcluster
  context:
    cluster: devcluster
    user: %[3]q
users:
- name: %[3]q
  user:
    client-certificate-data: %[4]s
    client-key-data: %[5]s
`

// Kubeconfig returns a kubeconfig for user. It authenticates with the client
// certificate in pair and trusts server certificates of authority.
func Kubeconfig(server, user string, authority *Authority, pair Pair) []byte {
	encode := base64.StdEncoding.EncodeToString
	return fmt.Appendf(nil, kubeconfigFormat, server, encode(authority.PEM), user,
		encode(pair.Cert), encode(pair.Key))
}

// CheckKubeconfigFile returns an error if file exists and was not written by
// WriteKubeconfig, or if its directory does not exist.
func CheckKubeconfigFile(file string) error {
	if info, err := os.Stat(filepath.Dir(file)); err != nil || !info.IsDir() {
		return fmt.Errorf("write kubeconfig %s: no directory %s; create it or name another file with --kubeconfig",
			file, filepath.Dir(file))
	}
	content, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read kubeconfig: %w", err)
	}
	if len(content) > 0 && !bytes.HasPrefix(content, []byte(header)) {
		return fmt.Errorf("write kubeconfig %s: the file was not written by devcluster and is kept unchanged; "+
			"name another file with --kubeconfig", file)
	}
	return nil
}

// WriteKubeconfig replaces file atomically and gives it mode 0600.
func WriteKubeconfig(file string, content []byte) error {
	temp, err := os.CreateTemp(filepath.Dir(file), ".kubeconfig-*")
	if err != nil {
		if failed, ok := errors.AsType[*fs.PathError](err); ok {
			err = failed.Err // Its path would be that of the temporary file.
		}
		return fmt.Errorf("write kubeconfig %s: %w", file, err)
	}
	_, err = temp.Write(content)
	if errClose := temp.Close(); err == nil {
		err = errClose
	}
	if err == nil {
		err = os.Rename(temp.Name(), file)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("write kubeconfig %s: %w", file, err), os.Remove(temp.Name()))
	}
	return nil
}
