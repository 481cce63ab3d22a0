package source

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// configDir is the directory of an operator's manifests, relative to the directory of its sources.
const configDir = "config"

// Tree is the set of source files of an operator.
type Tree struct {
	dir      string
	packages map[string]bool // directories of local packages; their source files belong to the tree
	files    map[string]bool // single files that belong to the tree
	embedded map[string]bool // directories of embedded files outside of packages; all their files belong to the tree
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

// local reports whether the author may edit the package's sources: those of the main module, of the workspace, or of a
// directory that replaces a module, but not those of downloaded modules.
func (p goPackage) local() bool {
	if p.Standard || p.Dir == "" {
		return false
	}
	return p.Module == nil || p.Module.Main || (p.Module.Replace != nil && p.Module.Replace.Version == "")
}

// Dirs returns the directories to watch: those of the files in the tree, those between a package and the root of its
// module, where a missing package may appear, and the configuration directory with its subdirectories.
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
		return nil // an unreadable directory cannot be watched
	})
	return slices.Sorted(maps.Keys(dirs))
}

// Contains reports whether the file belongs to the operator, so that a change of it requires a rollout.
func (t *Tree) Contains(file string) bool {
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

// MayFixBuild reports whether a change of the file may fix a failed build. Besides the files in the tree, these are
// directories and source files outside of known packages, which may be a missing package.
func (t *Tree) MayFixBuild(file string) bool {
	name := filepath.Base(file)
	if t.Contains(file) || temporary(name) {
		return t.Contains(file)
	}
	info, err := os.Stat(file)
	return compiled(name) || (err == nil && info.IsDir())
}

// within reports whether path is dir or below it.
func within(dir, path string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, string(filepath.Separator))+string(filepath.Separator))
}

// temporary reports whether a name looks like that of an editor's temporary file.
func temporary(name string) bool {
	return strings.HasPrefix(name, ".") || strings.HasPrefix(name, "#") || strings.HasSuffix(name, "~") ||
		strings.HasSuffix(name, ".tmp") || name == "4913" // vim creates this file to test whether a directory is writable
}

// compiled reports whether "go build" reads a file of that name.
func compiled(name string) bool {
	if strings.HasPrefix(name, "_") || strings.HasSuffix(name, "_test.go") {
		return false
	}
	return slices.Contains([]string{".go", ".c", ".cc", ".cpp", ".cxx", ".h", ".hh", ".hpp", ".m", ".s", ".S", ".syso"},
		filepath.Ext(name))
}
