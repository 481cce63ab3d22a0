package main

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
)

// readableFiles returns the text files of a tree that people read: documentation, source, scripts and manifests. It leaves out this package, which
// must name what it refuses, hidden folders, and bin.
func readableFiles(tree fs.FS) ([]string, error) {
	extensions := []string{".md", ".go", ".sh", ".yaml", ".yml", ".txtar", ".txt", ".json", ".sql", ".golden"}
	var files []string
	err := fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		base := path.Base(name)
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name != "." && (strings.HasPrefix(base, ".") && base != ".ci" || name == "bin" || name == "tools/docs"):
			return fs.SkipDir
		case !entry.IsDir() && (slices.Contains(extensions, path.Ext(name)) || base == "Makefile" || base == "Dockerfile"):
			files = append(files, name)
		}
		return nil
	})
	return files, err
}

// refused is a pattern that no text may contain, and what to write instead.
type refused struct {
	pattern *regexp.Regexp
	instead string
}

// refusedTexts are the words that make readers parse a sentence twice, and citations of what is not in the repository.
func refusedTexts() []refused {
	of := func(pattern, instead string) refused { return refused{regexp.MustCompile(pattern), instead} }
	const subject = "name the actor: say who does it"
	return []refused{
		of(`(?i)nobody|somebody|whoever`, subject),
		of(`\b[aA]new\b|[a-z]Anew`, "write again"),
		of(`(?i)\bfor want of\b`, "write without, or because … is missing"),
		of(`(?i)\btells whether\b`, "write reports whether"),
		of(`(?i)\b(is|are) told\b`, subject),
		of(`§`, "cite a file of this repository or a public URL"),
		of(`(?i)\b(issue|session) #?\d+`, "cite a file of this repository or a public URL"),
	}
}

// allowedTexts are names that contain a refused word and are not ours: of net/http, and of a Redis user that stays as it is.
func allowedTexts() *regexp.Regexp { return regexp.MustCompile(`http\.NoBody|einmal:nobody`) }

// plainness returns a complaint for each line of a text with a refused word.
func plainness(text string) []string {
	allowed := allowedTexts()
	var found []string
	for number, line := range strings.Split(text, "\n") {
		line = allowed.ReplaceAllString(line, "")
		for _, one := range refusedTexts() {
			if word := one.pattern.FindString(line); word != "" {
				found = append(found, fmt.Sprintf("line %d: %q: %s", number+1, word, one.instead))
			}
		}
	}
	return found
}

// missingCitations returns a complaint for each document that a text names by its path, and for each decision that it names by its number, which
// does not exist: neither below the root nor beside the text. It leaves out Markdown pages, whose links are checked, and test data.
func missingCitations(tree fs.FS, file, text string) []string {
	if path.Ext(file) == ".md" || strings.Contains(file, "testdata/") {
		return nil
	}
	document, decision := regexp.MustCompile(`\b[\w./:-]+\.md\b`), regexp.MustCompile(`\bdocs/decisions/\d{4}`)
	exists := func(pattern string) bool {
		found, err := fs.Glob(tree, pattern)
		return err == nil && len(found) > 0
	}
	var missing []string
	for number, line := range strings.Split(text, "\n") {
		for _, cited := range document.FindAllString(line, -1) {
			if !strings.Contains(cited, "://") && !exists(path.Clean(cited)) && !exists(path.Join(path.Dir(file), cited)) {
				missing = append(missing, fmt.Sprintf("line %d: %s: no such document", number+1, cited))
			}
		}
		for _, cited := range decision.FindAllString(line, -1) {
			if !exists(cited + "-*.md") {
				missing = append(missing, fmt.Sprintf("line %d: %s: no such decision", number+1, cited))
			}
		}
	}
	return missing
}
