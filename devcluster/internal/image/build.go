package image

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// defaultPath is the default PATH of containers, as in Debian.
const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// Options say how an image is built.
type Options struct {
	// Cache is the directory of layers with packages. It is created.
	Cache string
	// NoCache downloads the packages also if the cache has them.
	NoCache bool
	// Progress gets a line for each long step.
	Progress io.Writer
}

// Build builds an image and writes it to a file, as a docker archive. The file is
// complete or absent.
func (s Spec) Build(ctx context.Context, archive string, o Options) error {
	if err := s.Validate(); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "devcluster-image-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }() // It is in the directory for temporary files.
	files, err := s.layers(ctx, dir, o)
	if err != nil {
		return err
	}
	image, err := s.assemble(files)
	if err != nil {
		return err
	}
	return write(archive, func(out io.Writer) error { return tarball.Write(s.Tag, image, out) })
}

// layers writes the layers of an image, and returns their files.
func (s Spec) layers(ctx context.Context, dir string, o Options) ([]string, error) {
	base, added := filepath.Join(dir, "base"), filepath.Join(dir, "added")
	files := []string{base}
	if err := writeLayer(base, func(l *layer) error { return s.addBase(l, o.Progress) }); err != nil {
		return nil, err
	}
	if s.Packages.Suite != "" {
		packages, err := s.Packages.layer(ctx, o)
		if err != nil {
			return nil, fmt.Errorf("packages of %s: %w", s.Packages.Suite, err)
		}
		files = append(files, packages)
	}
	if len(s.Added) > 0 || len(s.Programs) > 0 {
		if err := writeLayer(added, s.addFiles); err != nil {
			return nil, err
		}
		files = append(files, added)
	}
	return files, nil
}

// assemble makes an image of layers.
func (s Spec) assemble(files []string) (v1.Image, error) {
	entrypoint := s.Entrypoint
	if len(entrypoint) == 0 && len(s.Programs) > 0 {
		entrypoint = []string{programPath(s.Programs[0])}
	}
	config := v1.Config{Env: s.Env, Entrypoint: entrypoint}
	if !slices.ContainsFunc(s.Env, func(variable string) bool { return strings.HasPrefix(variable, "PATH=") }) {
		config.Env = append([]string{"PATH=" + defaultPath}, s.Env...)
	}
	if s.User.ID != 0 {
		config.User = fmt.Sprintf("%d:%d", s.User.ID, s.User.ID)
	}
	image, err := mutate.ConfigFile(empty.Image, &v1.ConfigFile{
		OS: "linux", Architecture: runtime.GOARCH, Config: config, RootFS: v1.RootFS{Type: "layers"},
	})
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		l, err := tarball.LayerFromFile(file)
		if err != nil {
			return nil, err
		}
		if image, err = mutate.AppendLayers(image, l); err != nil {
			return nil, err
		}
	}
	return image, nil
}

// write writes a file. Without an error, the file is complete.
func write(file string, fill func(io.Writer) error) error {
	out, err := os.CreateTemp(filepath.Dir(file), filepath.Base(file)+".*.new")
	if err != nil {
		return err
	}
	err = errors.Join(fill(out), out.Close())
	if err == nil {
		err = os.Rename(out.Name(), file)
	}
	if err != nil {
		_ = os.Remove(out.Name()) // The first error says more.
	}
	return err
}
