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

// brokenLinks returns a message for each broken relative link of a page. It does not check links to other sites, because
// the result would depend on the network.
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

// follow returns why a link is broken, or "".
func follow(tree fs.FS, page, link string) string {
	target, err := url.Parse(link)
	if err != nil {
		return "invalid URL"
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
		return "cannot read the file"
	}
	if !anchors(string(text))[target.Fragment] {
		return "no such heading"
	}
	return ""
}

// anchors returns the anchors of the headings of a page.
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

// slug returns the anchor of a heading, as common Markdown renderers do.
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

// prose returns a page without fenced blocks and code spans, in which links have no effect.
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
