package object

import (
	"fmt"
	"strings"
)

// Path names a field of an object, one element per level: spec.size is {"spec", "size"}.
type Path []string

// ParsePath reads a dotted path such as spec.size. A key that has dots of its own goes in brackets:
// metadata.labels[app.kubernetes.io/name]. An empty path, an empty element and an open bracket are errors.
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
		return nil, fmt.Errorf("field path is empty: write it like spec.size")
	}
	return path, nil
}

func nextElement(rest string) (element, tail string, err error) {
	if strings.HasPrefix(rest, "[") {
		end := strings.IndexByte(rest, ']')
		if end <= 1 {
			return "", "", fmt.Errorf("a bracket is empty or not closed at %q", rest)
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
		return "", "", fmt.Errorf("an element is empty at %q", rest)
	}
	if dotted, found := strings.CutPrefix(tail, "."); found {
		if dotted == "" {
			return "", "", fmt.Errorf("it ends with a dot")
		}
		tail = dotted
	}
	return element, tail, nil
}

// String gives the form that ParsePath reads.
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

// Child is the path one level deeper. It never shares memory with p.
func (p Path) Child(element string) Path {
	child := make(Path, len(p), len(p)+1)
	copy(child, p)
	return append(child, element)
}

// Under tells whether p is prefix or lies below it.
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
