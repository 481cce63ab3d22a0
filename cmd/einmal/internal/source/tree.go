package source

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// configDir is where an operator keeps its manifests, beneath the directory of its sources.
const configDir = "config"

// Tree is the set of files that an operator is made of.
type Tree struct {
	dir      string
	packages map[string]bool // directories of local packages: their source files count
	files    map[string]bool // files that count wherever they are
	embedded map[string]bool // directories of embedded files that are no packages: all files in them count
	modules  map[string]bool // directories of local modules
}

func newTree(dir string, packages []goPackage, workspace string) *Tree {
	t := &Tree{
		dir:      dir,
		packages: map[string]bool{dir: true},
		files:    map[string]bool{},
		embedded: map[string]bool{},
		modules:  map[string]bool{},
	}
	if workspace != "" && workspace != "off" {
		t.files[workspace] = true
	}
	for _, p := range packages {
		if !p.local() {
			continue
		}
		t.packages[p.Dir] = true
		for _, name := range p.EmbedFiles {
			file := filepath.Join(p.Dir, name)
			t.files[file] = true
			if in := filepath.Dir(file); in != p.Dir {
				t.embedded[in] = true
			}
		}
		if p.Module != nil && p.Module.GoMod != "" {
			t.modules[filepath.Dir(p.Module.GoMod)] = true
			t.files[p.Module.GoMod] = true
			t.files[filepath.Join(filepath.Dir(p.Module.GoMod), "go.sum")] = true
		}
	}
	return t
}

// local tells whether a package's sources are the author's own, to be changed: those of the main module, of the
// workspace, or of a directory that replaces a module; not what was downloaded.
func (p goPackage) local() bool {
	if p.Standard || p.Dir == "" {
		return false
	}
	return p.Module == nil || p.Module.Main || (p.Module.Replace != nil && p.Module.Replace.Version == "")
}

// Dirs returns the directories to watch: those of the files that count, those between a package and its module
// (where a package that is missing may appear), and the operator's configuration with all beneath it.
func (t *Tree) Dirs() []string {
	dirs := maps.Clone(t.packages)
	maps.Copy(dirs, t.embedded)
	for file := range t.files {
		dirs[filepath.Dir(file)] = true
	}
	for dir := range t.packages {
		for module := range t.modules {
			if !within(module, dir) {
				continue
			}
			for up := dir; within(module, up); up = filepath.Dir(up) {
				dirs[up] = true
			}
		}
	}
	_ = filepath.WalkDir(filepath.Join(t.dir, configDir), func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			dirs[path] = true
		}
		return nil // what cannot be read cannot be watched either
	})
	return slices.Sorted(maps.Keys(dirs))
}

// Counts tells whether a change of the file makes another operator of it.
func (t *Tree) Counts(file string) bool {
	dir, name := filepath.Dir(file), filepath.Base(file)
	if t.files[file] {
		return true
	}
	if temporary(name) {
		return false
	}
	if t.embedded[dir] || within(filepath.Join(t.dir, configDir), file) {
		return true
	}
	return t.packages[dir] && compiled(name)
}

// MayMend tells whether a change of the file can make sources whole that do not compile: besides those that count,
// also a new directory, or a source file in one, may be what is missing.
func (t *Tree) MayMend(file string) bool {
	name := filepath.Base(file)
	if t.Counts(file) || temporary(name) {
		return t.Counts(file)
	}
	info, err := os.Stat(file)
	return compiled(name) || (err == nil && info.IsDir())
}

// within tells whether path is dir or beneath it.
func within(dir, path string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, string(filepath.Separator))+string(filepath.Separator))
}

// temporary tells whether a name is one that editors give to files that they keep for a moment.
func temporary(name string) bool {
	return strings.HasPrefix(name, ".") || strings.HasPrefix(name, "#") || strings.HasSuffix(name, "~") ||
		strings.HasSuffix(name, ".tmp") || name == "4913" // vim tries out whether it may create a file
}

// compiled tells whether a file of that name is read by "go build".
func compiled(name string) bool {
	if strings.HasPrefix(name, "_") || strings.HasSuffix(name, "_test.go") {
		return false
	}
	return slices.Contains([]string{".go", ".c", ".cc", ".cpp", ".cxx", ".h", ".hh", ".hpp", ".m", ".s", ".S", ".syso"},
		filepath.Ext(name))
}
