package object

import (
	"fmt"
	"strings"
)

// Path names a field of an object, with one element per level: spec.size is {"spec", "size"}.
type Path []string

// ParsePath parses a dotted path such as spec.size. A key that contains dots is written in brackets:
// metadata.labels[app.kubernetes.io/name]. Empty paths, empty elements and unclosed brackets are errors.
func ParsePath(text string) (Path, error) {
	var path Path
	rest := text
	for rest != "" {
		element, tail, err := nextElement(rest)
		if err != nil {
			return nil, fmt.Errorf("field path %q: %w", text, err)
		}
		path, rest = append(path, element), tail
	}
	if len(path) == 0 {
		return nil, fmt.Errorf("field path is empty; write one such as spec.size")
	}
	return path, nil
}

func nextElement(rest string) (element, tail string, err error) {
	if strings.HasPrefix(rest, "[") {
		end := strings.IndexByte(rest, ']')
		if end <= 1 {
			return "", "", fmt.Errorf("empty or unclosed bracket at %q", rest)
		}
		element, tail = rest[1:end], rest[end+1:]
	} else {
		end := strings.IndexAny(rest, ".[")
		if end < 0 {
			end = len(rest)
		}
		element, tail = rest[:end], rest[end:]
	}
	if element == "" {
		return "", "", fmt.Errorf("empty element at %q", rest)
	}
	if dotted, found := strings.CutPrefix(tail, "."); found {
		if dotted == "" {
			return "", "", fmt.Errorf("trailing dot")
		}
		tail = dotted
	}
	return element, tail, nil
}

// String returns the path in the form that ParsePath parses.
func (p Path) String() string {
	var text strings.Builder
	for i, element := range p {
		switch {
		case strings.ContainsAny(element, ".["):
			text.WriteString("[" + element + "]")
		case i == 0:
			text.WriteString(element)
		default:
			text.WriteString("." + element)
		}
	}
	return text.String()
}

// Child returns the path of a field one level deeper. The result does not share memory with p.
func (p Path) Child(element string) Path {
	child := make(Path, len(p), len(p)+1)
	copy(child, p)
	return append(child, element)
}

// Under reports whether p equals prefix or is below it.
func (p Path) Under(prefix ...string) bool {
	if len(p) < len(prefix) {
		return false
	}
	for i := range prefix {
		if p[i] != prefix[i] {
			return false
		}
	}
	return true
}
