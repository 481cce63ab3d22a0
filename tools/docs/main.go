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
	"slices"
	"strings"
)

func main() {
	write := flag.Bool("write", false, "bring quotations up to date")
	flag.Parse()
	root := "."
	if flag.NArg() > 0 {
		root = flag.Arg(0)
	}
	if *write {
		exitOn(updateQuotations(root))
	}
	complaints, err := check(os.DirFS(root), os.Stdout)
	exitOn(err)
	if complaints > 0 {
		os.Exit(1)
	}
}

func exitOn(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "docs:", err)
		os.Exit(2)
	}
}

// updateQuotations writes every quotation below root as its source has it.
func updateQuotations(root string) error {
	tree := os.DirFS(root)
	pages, err := markdownFiles(tree)
	if err != nil {
		return err
	}
	for _, page := range pages {
		text, err := fs.ReadFile(tree, page)
		if err != nil {
			return err
		}
		updated, _ := quote(tree, string(text))
		if updated == string(text) {
			continue
		}
		if err := os.WriteFile(filepath.Join(root, filepath.FromSlash(page)), []byte(updated), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// check counts what does not hold in the pages of a tree; each complaint goes to out, a line each.
func check(tree fs.FS, out io.Writer) (complaints int, err error) {
	pages, err := markdownFiles(tree)
	if err != nil {
		return 0, err
	}
	for _, page := range pages {
		text, err := fs.ReadFile(tree, page)
		if err != nil {
			return complaints, err
		}
		_, stale := quote(tree, string(text))
		for _, complaint := range slices.Concat(stale, brokenLinks(tree, page, string(text))) {
			fmt.Fprintf(out, "%s: %s\n", page, complaint)
			complaints++
		}
	}
	fmt.Fprintf(out, "%d pages, %d complaints\n", len(pages), complaints)
	return complaints, nil
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
