// Docs checks what the Markdown files of a repository promise: relative links and anchors lead somewhere, and a fenced
// block that is marked as a quotation says what its source says.
//
// A quotation is a comment in front of a fenced block, which names a file and, for Go, the declarations to quote:
//
//	<!-- from operators/volumeclaim/volumeclaim.go: applyVolume, volumeFor -->
//
// Usage:
//
//	docs [-write] [root]
//
// With -write the quotations are brought up to date instead of being reported.
package main

import (
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

func main() {
	write := flag.Bool("write", false, "bring quotations up to date")
	flag.Parse()
	root := "."
	if flag.NArg() > 0 {
		root = flag.Arg(0)
	}
	ok, err := run(root, *write, os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "docs:", err)
		os.Exit(2)
	}
	if !ok {
		os.Exit(1)
	}
}

// run checks all pages below root and reports whether they hold; what does not hold goes to out, a line each.
func run(root string, write bool, out io.Writer) (bool, error) {
	tree := os.DirFS(root)
	pages, err := markdownFiles(tree)
	if err != nil {
		return false, err
	}
	complaints := 0
	for _, page := range pages {
		text, err := fs.ReadFile(tree, page)
		if err != nil {
			return false, err
		}
		updated, stale := quote(tree, string(text))
		if write && updated != string(text) {
			if err := os.WriteFile(filepath.Join(root, filepath.FromSlash(page)), []byte(updated), 0o600); err != nil {
				return false, err
			}
			_, stale = quote(tree, updated)
		}
		found := append(stale, brokenLinks(tree, page, updated)...)
		for _, complaint := range found {
			fmt.Fprintf(out, "%s: %s\n", page, complaint)
		}
		complaints += len(found)
	}
	fmt.Fprintf(out, "%d pages, %d complaints\n", len(pages), complaints)
	return complaints == 0, nil
}

func markdownFiles(tree fs.FS) ([]string, error) {
	var pages []string
	err := fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name != "." && (strings.HasPrefix(path.Base(name), ".") || path.Base(name) == "testdata"):
			return fs.SkipDir
		case !entry.IsDir() && path.Ext(name) == ".md":
			pages = append(pages, name)
		}
		return nil
	})
	return pages, err
}
