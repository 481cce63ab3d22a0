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

// header is the first line of every kubeconfig written here. It tells such a
// file from one that belongs to the user and must not be overwritten.
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

// Kubeconfig returns a kubeconfig for user, which authenticates with the client
// certificate in pair to the server whose certificate authority signed.
func Kubeconfig(server, user string, authority *Authority, pair Pair) []byte {
	encode := base64.StdEncoding.EncodeToString
	return fmt.Appendf(nil, kubeconfigFormat, server, encode(authority.PEM), user,
		encode(pair.Cert), encode(pair.Key))
}

// CheckKubeconfigFile reports an error when file exists and was not written by
// WriteKubeconfig, or cannot be created because its directory does not exist.
func CheckKubeconfigFile(file string) error {
	if info, err := os.Stat(filepath.Dir(file)); err != nil || !info.IsDir() {
		return fmt.Errorf("write kubeconfig %s: there is no directory %s; create it or name another file with --kubeconfig",
			file, filepath.Dir(file))
	}
	content, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("kubeconfig: %w", err)
	}
	if len(content) > 0 && !bytes.HasPrefix(content, []byte(header)) {
		return fmt.Errorf("kubeconfig %s holds something that devcluster did not write, "+
			"so it stays untouched: name another file with --kubeconfig", file)
	}
	return nil
}

// WriteKubeconfig replaces file at once, so that a reader sees the old content
// or the new one. The file is readable by its owner alone.
func WriteKubeconfig(file string, content []byte) error {
	temp, err := os.CreateTemp(filepath.Dir(file), ".kubeconfig-*")
	if err != nil {
		if failed, ok := errors.AsType[*fs.PathError](err); ok {
			err = failed.Err // The path is that of a temporary file.
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
