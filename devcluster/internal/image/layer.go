package image

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"path"
	"slices"
	"strings"
	"time"
)

// layer is a layer that is written to a file: a compressed tar archive.
type layer struct {
	tar *tar.Writer
	// directories are those that the layer has already.
	directories map[string]bool
}

// writeLayer writes a layer to a file. Without an error, the file is complete.
func writeLayer(file string, fill func(*layer) error) error {
	return write(file, func(out io.Writer) error {
		compressed, err := gzip.NewWriterLevel(out, gzip.BestSpeed)
		if err != nil {
			return err
		}
		l := &layer{tar: tar.NewWriter(compressed), directories: map[string]bool{}}
		if err := fill(l); err != nil {
			return err
		}
		return errors.Join(l.tar.Close(), compressed.Close())
	})
}

// add adds a file. Its time is always the same, so that the same files give the same
// layer.
func (l *layer) add(h tar.Header, content io.Reader) error {
	h.Name = inImage(h.Name)
	if h.Typeflag == tar.TypeLink {
		h.Linkname = inImage(h.Linkname)
	}
	if h.Typeflag == tar.TypeDir {
		if h.Name == "" || l.directories[h.Name] {
			return nil
		}
		l.directories[h.Name] = true
		h.Name += "/"
	}
	h.ModTime, h.AccessTime, h.ChangeTime = time.Unix(0, 0), time.Time{}, time.Time{}
	h.Uname, h.Gname, h.Format = "", "", tar.FormatUnknown
	if err := l.tar.WriteHeader(&h); err != nil {
		return err
	}
	if h.Typeflag != tar.TypeReg {
		return nil
	}
	_, err := io.Copy(l.tar, content)
	return err
}

func (l *layer) addText(name string, mode int64, text string) error {
	h := tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode, Size: int64(len(text))}
	return l.add(h, strings.NewReader(text))
}

// linkedDirectories are links in the base to directories below usr, as in Debian since
// release 12. Packages of that release still have files in both places.
func linkedDirectories() []string { return []string{"bin", "lib", "lib64", "sbin"} }

// inImage returns where a path is in a layer: relative to the root, and not through a
// link of the base.
func inImage(name string) string {
	name = strings.TrimPrefix(path.Clean("/"+name), "/")
	first, _, _ := strings.Cut(name, "/")
	if slices.Contains(linkedDirectories(), first) {
		return "usr/" + name
	}
	return name
}
