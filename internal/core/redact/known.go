package redact

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/einmal-operators/einmal/internal/core/object"
)

// Values shorter than shortestValue are not treated as secrets, because they would match everywhere. In a value with several
// lines, each line of at least shortestLine is also masked on its own.
const (
	shortestValue = 3
	shortestLine  = 8
)

// Values returns the decoded values of a Secret.
func Values(secret object.Body) []string {
	var values []string
	for _, value := range object.Map(secret, "data") {
		text, _ := value.(string)
		if decoded, err := base64.StdEncoding.DecodeString(text); err == nil {
			values = append(values, string(decoded))
		} else {
			values = append(values, text) // Not in the form in which an API server returns it.
		}
	}
	for _, value := range object.Map(secret, "stringData") {
		if text, isText := value.(string); isText {
			values = append(values, text)
		}
	}
	return values
}

// withoutKnown masks the values in all forms in which they are commonly written, longest first.
func withoutKnown(text string, values []string) string {
	var found []string
	for _, value := range values {
		for _, form := range forms(value, len(text)) {
			if strings.Contains(text, form) {
				found = append(found, form)
			}
		}
	}
	slices.SortFunc(found, func(one, other string) int { return len(other) - len(one) })
	for _, form := range found {
		text = strings.ReplaceAll(text, form, Mask)
	}
	return text
}

// forms returns the forms of a value that fit into a text of this length.
func forms(value string, length int) []string {
	var written []string
	if trimmed := strings.TrimSpace(value); strings.Contains(trimmed, "\n") {
		for line := range strings.SplitSeq(trimmed, "\n") {
			if line = strings.TrimSpace(line); len(line) >= shortestLine {
				written = append(written, line)
			}
		}
	}
	if len(value) < shortestValue || len(strings.TrimSpace(value)) > length {
		return written
	}
	raw := []byte(value)
	written = append(written, value, strings.Trim(strconv.Quote(value), `"`), percent(value), hex.EncodeToString(raw),
		base64.RawStdEncoding.EncodeToString(raw), base64.RawURLEncoding.EncodeToString(raw), strings.Trim(fmt.Sprintf("%d", raw), "[]"))
	if escaped, err := json.Marshal(value); err == nil {
		written = append(written, strings.Trim(string(escaped), `"`))
	}
	if trimmed := strings.TrimSpace(value); len(trimmed) >= shortestValue {
		written = append(written, trimmed) // Errors usually omit the newline at the end of a file.
	}
	return written
}

// percent returns the value percent-encoded, as in a URL.
func percent(value string) string {
	var written strings.Builder
	for _, letter := range []byte(value) {
		switch {
		case 'a' <= letter && letter <= 'z', 'A' <= letter && letter <= 'Z', '0' <= letter && letter <= '9', strings.IndexByte("-_.~", letter) >= 0:
			written.WriteByte(letter)
		default:
			fmt.Fprintf(&written, "%%%02X", letter)
		}
	}
	return written.String()
}
