// Package scrub takes secrets out of texts that are kept or shown: messages of errors, above all. What it cannot
// recognise it cannot take out, and it rather takes out too much.
package scrub

import (
	"regexp"
	"slices"
	"strings"
)

// Mask stands where a secret was.
const Mask = "***"

// Parts of the patterns.
const (
	// secretKey is a name whose value is secret: password, DB_PASSWORD, x-api-key, clientSecret.
	secretKey = `[\w.-]*(?:password|passwd|passphrase|pwd|secret|token|credentials?|authorization|signature` +
		`|(?:api|access|private|secret|signing|encryption|account|shared|master)[_-]?key)s?\d*|[\w.-]*[_-](?:pass|sig)|\b(?:pass|sig)`
	// quotedValue is a value in quotes, which may be escaped or not closed; anyValue also one that ends with the word.
	quotedValue = `\\+".*?\\+"|"(?:[^"\\]|\\.)*"?|'[^']*'?` + "|`[^`]*`?"
	anyValue    = `\*\*\*|` + quotedValue + `|\[[^\]]*\]?|\S+`
)

// Scrubber holds the patterns by which secrets are recognised.
type Scrubber struct {
	rules []rule
	// pair is a name and its value; line is a pair on a line of its own.
	pair, line *regexp.Regexp
	// scheme is an authorization: its scheme and a credential.
	scheme *regexp.Regexp
	// name is a name alone.
	name *regexp.Regexp
	// word is what prose consists of, letter how it begins.
	word, letter *regexp.Regexp
}

// rule replaces what matches; the template says what is kept of it.
type rule struct {
	pattern *regexp.Regexp
	keep    string
}

// New makes a scrubber.
func New() *Scrubber {
	return &Scrubber{
		rules: []rule{
			{regexp.MustCompile(`(?s)-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----.*?(?:-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|\z)`), Mask},
			// The same in base64, as a kubeconfig has it.
			{regexp.MustCompile(`LS0tLS1CRUdJTi[A-Za-z0-9+/=_-]*`), Mask},
			// A password in a URL. One that is not escaped may have anything in it but a space, in quotes even that.
			{regexp.MustCompile(`("[A-Za-z][A-Za-z0-9+.-]*://[^\s"/?#:]*:)(?:[^"\\]|\\.)*@`), `${1}` + Mask + `@`},
			{regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*://[^\s/?#:]*:)\S*@`), `${1}` + Mask + `@`},
			{regexp.MustCompile(`([\w.-]+:)\S+(@(?:tcp|udp|unix)\()`), `${1}` + Mask + `${2}`},
			// The parser of URLs takes the beginning of such a password for a port, and quotes it.
			{regexp.MustCompile(`invalid port "(?:[^"\\]|\\.)*" after host`), `invalid port "` + Mask + `" after host`},
			{regexp.MustCompile(`\beyJ[\w-]+\.[\w-]+(?:\.[\w-]*)?`), Mask},
			// The API server quotes a value that it refuses.
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

// Text returns the text with a mask in place of what is recognised as secret, and of the known values in any form.
func (s *Scrubber) Text(text string, known ...string) string {
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

// Secret tells whether a name is one whose value is secret: password, DB_TOKEN, clientSecret.
func (s *Scrubber) Secret(name string) bool { return s.name.MatchString(name) }

// harmless tells of texts that no pattern matches, which most are, at a small part of the price of trying.
func harmless(text string) bool {
	if strings.ContainsAny(text, ":=@") {
		return false
	}
	lower := strings.ToLower(text)
	return !slices.ContainsFunc([]string{"bearer", "basic", "eyj", "ls0t", "-----", "invalid port"}, func(part string) bool {
		return strings.Contains(lower, part)
	})
}

// maskPair masks the value of a pair. It leaves a sentence after a colon alone, as in token: expired, and what follows a
// quoted address, as in Get "https://example.com/token": EOF, since JSON has quotes around its texts.
func (s *Scrubber) maskPair(found string) string {
	part := s.pair.FindStringSubmatch(found)
	key, closing, sign, space, value := part[1], part[2], part[3], part[4], part[5]
	prose := s.word.MatchString(value) || strings.ContainsAny(closing, `"'`) && s.letter.MatchString(value)
	if sign == ":" && space != "" && prose {
		return found
	}
	return key + closing + sign + space + Mask
}
