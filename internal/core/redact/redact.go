// Package redact redacts secrets in texts that are stored or shown, above all in error messages. It can redact only what it
// recognizes, and in doubt it redacts too much.
package redact

import (
	"regexp"
	"slices"
	"strings"
)

// Mask replaces a redacted secret.
const Mask = "***"

// Parts of the patterns.
const (
	// secretKey matches a name whose value is secret: password, DB_PASSWORD, x-api-key, clientSecret.
	secretKey = `[\w.-]*(?:password|passwd|passphrase|pwd|secret|token|credentials?|authorization|signature` +
		`|(?:api|access|private|secret|signing|encryption|account|shared|master)[_-]?key)s?\d*|[\w.-]*[_-](?:pass|sig)|\b(?:pass|sig)`
	// quotedValue matches a quoted value, which may be escaped or unclosed. anyValue also matches an unquoted word.
	quotedValue = `\\+".*?\\+"|"(?:[^"\\]|\\.)*"?|'[^']*'?` + "|`[^`]*`?"
	anyValue    = `\*\*\*|` + quotedValue + `|\[[^\]]*\]?|\S+`
)

// Redactor holds the patterns that recognize secrets.
type Redactor struct {
	rules []rule
	// pair matches a name and its value; line matches a pair on a line of its own.
	pair, line *regexp.Regexp
	// scheme matches an authorization scheme and its credential.
	scheme *regexp.Regexp
	// name matches a name without a value.
	name *regexp.Regexp
	// word matches a word of prose, letter the start of one.
	word, letter *regexp.Regexp
}

// rule replaces what its pattern matches by a template, which names what to keep.
type rule struct {
	pattern *regexp.Regexp
	keep    string
}

// New returns a redactor.
func New() *Redactor {
	return &Redactor{
		rules: []rule{
			{regexp.MustCompile(`(?s)-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----.*?(?:-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|\z)`), Mask},
			// The same in base64, as in a kubeconfig.
			{regexp.MustCompile(`LS0tLS1CRUdJTi[A-Za-z0-9+/=_-]*`), Mask},
			// A password in a URL. An unescaped one may contain anything except a space; in quotes it may contain even that.
			{regexp.MustCompile(`("[A-Za-z][A-Za-z0-9+.-]*://[^\s"/?#:]*:)(?:[^"\\]|\\.)*@`), `${1}` + Mask + `@`},
			{regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*://[^\s/?#:]*:)\S*@`), `${1}` + Mask + `@`},
			{regexp.MustCompile(`([\w.-]+:)\S+(@(?:tcp|udp|unix)\()`), `${1}` + Mask + `${2}`},
			// The URL parser mistakes the beginning of such a password for a port and quotes it.
			{regexp.MustCompile(`invalid port "(?:[^"\\]|\\.)*" after host`), `invalid port "` + Mask + `" after host`},
			{regexp.MustCompile(`\beyJ[\w-]+\.[\w-]+(?:\.[\w-]*)?`), Mask},
			// The API server quotes a value that it rejects.
			{regexp.MustCompile(`(?i)((?:` + secretKey + `)[\]"']*: (?:invalid|unsupported|duplicate) value: )(?:` + anyValue + `)`), `${1}` + Mask},
		},
		pair:   regexp.MustCompile(`(?i)(` + secretKey + `)(\\*["'\]]?[ \t]*)(:=|=>|==?|:)([ \t]*)(` + anyValue + `)`),
		line:   regexp.MustCompile(`(?im)^([ \t]*(?:- )?["']?(?:` + secretKey + `)["']?:[ \t]+)\S+[ \t]*$`),
		scheme: regexp.MustCompile(`(?i)\b(bearer|basic)([ \t]+)([\w.~+/-]+=*)`),
		name:   regexp.MustCompile(`(?i)^(?:` + secretKey + `)$`),
		word:   regexp.MustCompile(`^(?:[A-Z]?[a-z]{0,19}|[A-Z]{0,19}|\d{0,3}|https?://.*)[.,:;!?)]*$`),
		letter: regexp.MustCompile(`^[A-Za-z]`),
	}
}

// Text returns the text with everything that is recognized as a secret, and the known values in any form, replaced by Mask.
func (s *Redactor) Text(text string, known ...string) string {
	if text = withoutKnown(text, known); harmless(text) {
		return text
	}
	for _, r := range s.rules {
		text = r.pattern.ReplaceAllString(text, r.keep)
	}
	text = s.scheme.ReplaceAllStringFunc(text, func(found string) string {
		part := s.scheme.FindStringSubmatch(found)
		if s.word.MatchString(part[3]) {
			return found
		}
		return part[1] + part[2] + Mask
	})
	if strings.Contains(text, "\n") {
		text = s.line.ReplaceAllString(text, `${1}`+Mask)
	}
	return s.pair.ReplaceAllStringFunc(text, s.maskPair)
}

// Secret reports whether the value under such a name is secret: password, DB_TOKEN, clientSecret.
func (s *Redactor) Secret(name string) bool { return s.name.MatchString(name) }

// harmless reports whether no pattern can match a text. That is true of most texts, and cheaper than trying all patterns.
func harmless(text string) bool {
	if strings.ContainsAny(text, ":=@") {
		return false
	}
	lower := strings.ToLower(text)
	return !slices.ContainsFunc([]string{"bearer", "basic", "eyj", "ls0t", "-----", "invalid port"}, func(part string) bool {
		return strings.Contains(lower, part)
	})
}

// maskPair masks the value of a pair. It keeps prose after a colon, as in token: expired, and what follows a quoted address, as
// in Get "https://example.com/token": EOF: in JSON, text values are quoted.
func (s *Redactor) maskPair(found string) string {
	part := s.pair.FindStringSubmatch(found)
	key, closing, sign, space, value := part[1], part[2], part[3], part[4], part[5]
	prose := s.word.MatchString(value) || strings.ContainsAny(closing, `"'`) && s.letter.MatchString(value)
	if sign == ":" && space != "" && prose {
		return found
	}
	return key + closing + sign + space + Mask
}
