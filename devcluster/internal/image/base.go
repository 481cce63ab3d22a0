package image

import (
	"archive/tar"
	"fmt"
	"io"
	"os"
)

// certificateFiles returns where distributions have the CA certificates, as in
// crypto/x509.
func certificateFiles() []string {
	return []string{
		"/etc/ssl/certs/ca-certificates.crt",
		"/etc/pki/tls/certs/ca-bundle.crt",
		"/etc/ssl/ca-bundle.pem",
		"/etc/ssl/cert.pem",
	}
}

// addBase adds what every image has: the CA certificates of this machine, users, /tmp,
// and the links of Debian's directories.
func (s Spec) addBase(l *layer, progress io.Writer) error {
	for _, name := range linkedDirectories() {
		if err := l.add(tar.Header{Typeflag: tar.TypeDir, Name: "usr/" + name, Mode: 0o755}, nil); err != nil {
			return err
		}
		link := &tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: "usr/" + name, Mode: 0o777}
		if err := l.tar.WriteHeader(link); err != nil {
			return err
		}
	}
	if err := l.add(tar.Header{Typeflag: tar.TypeDir, Name: "tmp", Mode: 0o1777}, nil); err != nil {
		return err
	}
	users, groups := "root:x:0:0:root:/root:/bin/sh\n", "root:x:0:\n"
	if s.User.Name != "" && s.User.ID != 0 {
		users += fmt.Sprintf("%s:x:%d:%d::/:/bin/sh\n", s.User.Name, s.User.ID, s.User.ID)
		groups += fmt.Sprintf("%s:x:%d:\n", s.User.Name, s.User.ID)
	}
	if err := l.addText("etc/passwd", 0o644, users); err != nil {
		return err
	}
	if err := l.addText("etc/group", 0o644, groups); err != nil {
		return err
	}
	for _, file := range certificateFiles() {
		text, err := os.ReadFile(file)
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			return err
		}
		return l.addText("etc/ssl/certs/ca-certificates.crt", 0o644, string(text))
	}
	fmt.Fprintln(progress, "this machine has no CA certificates, so the image has none; they are in the package ca-certificates")
	return nil
}
