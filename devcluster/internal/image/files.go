package image

import (
	"archive/tar"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
)

// programDir is where an image has its programs.
const programDir = "/usr/local/bin"

// addFiles adds files and programs of this machine. They belong to root.
func (s Spec) addFiles(l *layer) error {
	for _, a := range s.Added {
		if err := a.addTo(l); err != nil {
			return fmt.Errorf("add %s: %w", a.Host, err)
		}
	}
	for _, program := range s.Programs {
		if err := s.checkProgram(program); err != nil {
			return fmt.Errorf("program %s: %w", program, err)
		}
		if err := addFile(l, program, programPath(program)); err != nil {
			return fmt.Errorf("program %s: %w", program, err)
		}
	}
	return nil
}

// programPath returns where the image has a program.
func programPath(program string) string { return path.Join(programDir, filepath.Base(program)) }

// addTo adds a file, or all files below a directory.
func (a Added) addTo(l *layer) error {
	host, err := filepath.EvalSymlinks(a.Host)
	if err != nil {
		return err
	}
	return filepath.WalkDir(host, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		below, err := filepath.Rel(host, file)
		if err != nil {
			return err
		}
		// The directory keeps its mode in the image, for example that of /tmp.
		if below == "." && entry.IsDir() {
			return nil
		}
		return addFile(l, file, path.Join(a.Path, filepath.ToSlash(below)))
	})
}

// addFile adds one file, directory or symbolic link.
func addFile(l *layer, file, name string) error {
	info, err := os.Lstat(file)
	if err != nil {
		return err
	}
	var target string
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		if target, err = os.Readlink(file); err != nil {
			return err
		}
	case !info.Mode().IsRegular() && !info.IsDir():
		return fmt.Errorf("%s must be a file, a directory or a symbolic link, but is %s", file, info.Mode().Type())
	}
	h, err := tar.FileInfoHeader(info, target)
	if err != nil {
		return err
	}
	h.Name, h.Uid, h.Gid = name, 0, 0
	if h.Typeflag != tar.TypeReg {
		return l.add(*h, nil)
	}
	content, err := os.Open(file)
	if err != nil {
		return err
	}
	return errors.Join(l.add(*h, content), content.Close())
}

// checkProgram returns an error if the image cannot run a program.
func (s Spec) checkProgram(program string) error {
	file, err := elf.Open(program)
	var format *elf.FormatError
	if errors.As(err, &format) || errors.Is(err, io.EOF) {
		return errors.New("must be an executable file for Linux (ELF); add scripts with --add")
	}
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // It was only read.
	machines := map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}
	if want := machines[runtime.GOARCH]; file.Machine != want {
		return fmt.Errorf("is for %s, but the node is for %s; build it with GOARCH=%s", file.Machine, want, runtime.GOARCH)
	}
	if len(s.Packages.Names) > 0 || len(s.Added) > 0 {
		return nil
	}
	for _, part := range file.Progs {
		if part.Type == elf.PT_INTERP {
			return errors.New("is dynamically linked, and the image has no libraries; build it with CGO_ENABLED=0, or add libraries with --debian or --add")
		}
	}
	return nil
}
