// Docs checks the Markdown files of a repository: relative links and anchors must not be broken, and fenced blocks that are
// marked as quotations must be identical to their source. It also checks the language of all files that people read: words that
// CONTRIBUTING.md rules out, and citations of documents that are not in the repository.
//
// A comment before a fenced block marks it as a quotation. It names a file and, for Go, the quoted declarations:
//
//	<!-- from operators/volumeclaim/volumeclaim.go: applyVolume, volumeFor -->
//
// Usage:
//
//	docs [-write] [root]
//
// With -write, docs updates outdated quotations before it checks.
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
	write := flag.Bool("write", false, "update outdated quotations")
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

// updateQuotations updates all quotations in pages below root from their sources.
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

// check checks the pages of a tree. It writes each complaint to out on a line and returns their number.
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
	files, err := readableFiles(tree)
	if err != nil {
		return complaints, err
	}
	for _, file := range files {
		text, err := fs.ReadFile(tree, file)
		if err != nil {
			return complaints, err
		}
		for _, complaint := range slices.Concat(plainness(string(text)), missingCitations(tree, file, string(text))) {
			fmt.Fprintf(out, "%s: %s\n", file, complaint)
			complaints++
		}
	}
	fmt.Fprintf(out, "%d pages and %d files, %d complaints\n", len(pages), len(files), complaints)
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
