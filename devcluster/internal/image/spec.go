package image

import (
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
)

// Spec describes an image. Later parts replace files of earlier ones: first the base,
// then the packages, the added files, and the programs.
type Spec struct {
	// Tag is the image's name.
	Tag name.Tag
	// Packages are packages of Debian.
	Packages Packages
	// Added are files of this machine.
	Added []Added
	// Programs are files of this machine that become /usr/local/bin/NAME.
	Programs []string
	// User runs the containers. The default is root.
	User User
	// Entrypoint is the command of the containers. The default is the first program.
	Entrypoint []string
	// Env are environment variables, as NAME=VALUE.
	Env []string
}

// Packages are packages of a suite of Debian. They are unpacked, and their scripts
// do not run.
type Packages struct {
	// Suite is a release of the distribution of this machine, for example "bookworm".
	Suite string
	// Names are the wanted packages. What they depend on is added.
	Names []string
	// Exclude are patterns of packages that are left out, as in path.Match.
	Exclude []string
}

// Added is a file or a directory of this machine in an image.
type Added struct {
	// Host is its path on this machine.
	Host string
	// Path is its absolute path in the image. A directory gets the content of Host.
	Path string
}

// User is the user of the containers of an image.
type User struct {
	// ID is the user's and the group's ID.
	ID int
	// Name is in /etc/passwd and /etc/group, unless it is empty.
	Name string
}

// ParseTag parses the name of an image. It must have a tag other than latest: for
// latest, the kubelet asks a registry at each start of a container.
func ParseTag(text string) (name.Tag, error) {
	tag, err := name.NewTag(text, name.WithDefaultTag("latest"))
	if err != nil {
		return name.Tag{}, fmt.Errorf("image name %q: %w", text, err)
	}
	if tag.TagStr() == "latest" {
		return name.Tag{}, fmt.Errorf(`image name %q: must have a tag other than latest, for example "%s:dev", because Kubernetes pulls latest from a registry`,
			text, strings.TrimSuffix(text, ":latest"))
	}
	return tag, nil
}

// ParseAdded parses HOSTPATH:/path.
func ParseAdded(text string) (Added, error) {
	i := strings.LastIndex(text, ":")
	if i < 1 || !path.IsAbs(text[i+1:]) {
		return Added{}, fmt.Errorf("must be HOSTPATH:/path, got %q", text)
	}
	return Added{Host: text[:i], Path: path.Clean(text[i+1:])}, nil
}

// ParseUser parses ID or NAME:ID.
func ParseUser(text string) (User, error) {
	named, id, found := strings.Cut(text, ":")
	if !found {
		named, id = "", text
	}
	const bits = 31 // The largest ID that Kubernetes accepts.
	number, err := strconv.ParseUint(id, 10, bits)
	if err != nil || found && named == "" || strings.ContainsAny(named, ":/\n ") {
		return User{}, fmt.Errorf("must be ID or NAME:ID with a number, for example postgres:999, got %q", text)
	}
	return User{ID: int(number), Name: named}, nil
}

// Validate returns an error if parts of an image contradict each other.
func (s Spec) Validate() error {
	switch {
	case s.Packages.Suite != "" && len(s.Packages.Names) == 0:
		return errors.New("flag --debian: needs at least one package after NAME")
	case s.Packages.Suite == "" && len(s.Packages.Names) > 0:
		return fmt.Errorf("package %s: needs the flag --debian with a suite, for example --debian bookworm", s.Packages.Names[0])
	case s.Packages.Suite == "" && len(s.Packages.Exclude) > 0:
		return errors.New("flag --exclude: needs the flag --debian")
	case s.Packages.Suite == "" && len(s.Added) == 0 && len(s.Programs) == 0:
		return errors.New("the image would be empty: set --program, --debian or --add")
	}
	for _, pattern := range s.Packages.Exclude {
		if _, err := path.Match(pattern, ""); err != nil {
			return fmt.Errorf("flag --exclude: %w: %q", err, pattern)
		}
	}
	for _, variable := range s.Env {
		if before, _, found := strings.Cut(variable, "="); !found || before == "" {
			return fmt.Errorf("flag --env: must be NAME=VALUE, got %q", variable)
		}
	}
	return nil
}
