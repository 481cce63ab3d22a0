package main

import (
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"regexp"
	"strings"
	"unicode"
)

// brokenLinks returns a sentence for every relative link of a page that leads nowhere. Links to other sites are not
// followed: a check that needs the network fails for reasons that are not ours.
func brokenLinks(tree fs.FS, page, text string) []string {
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	var broken []string
	for _, match := range link.FindAllStringSubmatch(prose(text), -1) {
		if complaint := follow(tree, page, match[1]); complaint != "" {
			broken = append(broken, fmt.Sprintf("link %q: %s", match[1], complaint))
		}
	}
	return broken
}

// follow returns why a link leads nowhere, or nothing.
func follow(tree fs.FS, page, link string) string {
	target, err := url.Parse(link)
	if err != nil {
		return "cannot be read"
	}
	if target.Scheme != "" || target.Host != "" {
		return ""
	}
	file := page
	if target.Path != "" {
		file = path.Join(path.Dir(page), target.Path)
	}
	info, err := fs.Stat(tree, file)
	if err != nil {
		return "no such file"
	}
	if target.Fragment == "" || info.IsDir() {
		return ""
	}
	text, err := fs.ReadFile(tree, file)
	if err != nil {
		return "cannot be read"
	}
	if !anchors(string(text))[target.Fragment] {
		return "no such heading"
	}
	return ""
}

// anchors returns the names under which the headings of a page can be reached.
func anchors(text string) map[string]bool {
	found := map[string]bool{}
	for line := range strings.Lines(prose(text)) {
		title := strings.TrimLeft(line, "#")
		if title == line {
			continue
		}
		name := slug(strings.TrimSpace(title))
		for i := 1; found[name]; i++ {
			name = fmt.Sprintf("%s-%d", slug(strings.TrimSpace(title)), i)
		}
		found[name] = true
	}
	return found
}

// slug turns a heading into its anchor, as the common renderers do.
func slug(title string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
			return unicode.ToLower(r)
		case r == ' ':
			return '-'
		default:
			return -1
		}
	}, title)
}

// prose returns a page without its fenced blocks and code spans, where links are not links.
func prose(text string) string {
	span := regexp.MustCompile("`[^`\n]*`")
	var kept strings.Builder
	fenced := false
	for line := range strings.Lines(text) {
		if isFence(line) {
			fenced = !fenced
			continue
		}
		if fenced {
			continue
		}
		if strings.HasPrefix(line, "#") {
			kept.WriteString(line)
			continue
		}
		kept.WriteString(span.ReplaceAllString(line, ""))
	}
	return kept.String()
}

func isFence(line string) bool { return strings.HasPrefix(strings.TrimSpace(line), "```") }
