package einmaltest

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/txtar"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// The names of sections that are no manifests.
const (
	sectionGiven  = "given"
	sectionWhen   = "when"
	thenCalls     = "then calls"
	thenWrites    = "then writes"
	thenObjects   = "then objects"
	thenOutcomes  = "then outcomes"
	operatorLine  = "operator:"
	documentBreak = "---"
)

// script is a scenario script that was read.
type script struct {
	path    string
	archive *txtar.Archive
	// operator is the name of the subject; "" if the script does not say.
	operator string
	// parts are given, when and then, in the order of the script.
	parts []part
	// manifests are the objects of the other sections, by their names.
	manifests map[string][]*unstructured.Unstructured
}

// part is one section of a script that is played.
type part struct {
	name string
	// section is its place in the archive, line that of its heading in the file.
	section, line int
	text          string
	objects       []*unstructured.Unstructured // of given
}

func (p part) then() bool { return p.name != sectionGiven && p.name != sectionWhen }

// lines goes through the lines that are neither empty nor comments, with their numbers in the file.
func (p part) lines(yield func(int, string) bool) {
	n := p.line
	for line := range strings.Lines(p.text) {
		n++
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") && !yield(n, line) {
			return
		}
	}
}

// readScript reads a script. The error has every mistake in it that shows without playing it.
func readScript(path string) (*script, error) {
	archive, err := txtar.ParseFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the script: %w", err)
	}
	s := &script{path: filepath.ToSlash(path), archive: archive, manifests: map[string][]*unstructured.Unstructured{}}
	wrong := []error{s.readStory()}
	manifestLines := map[string]int{}
	line := 1 + bytes.Count(archive.Comment, []byte("\n"))
	for i, file := range archive.Files {
		one := part{name: file.Name, section: i, line: line, text: string(file.Data)}
		line += 1 + bytes.Count(file.Data, []byte("\n"))
		switch one.name {
		case sectionGiven:
			one.objects, err = s.readManifest(one)
			s.parts = append(s.parts, one)
		case sectionWhen, thenCalls, thenWrites, thenObjects, thenOutcomes:
			s.parts = append(s.parts, one)
		default:
			if at, twice := manifestLines[one.name]; twice {
				wrong = append(wrong, s.mistake(one.line, "line %d has a section of the name %q already: give one of them another", at, one.name))
			}
			manifestLines[one.name] = one.line
			s.manifests[one.name], err = s.readManifest(one)
		}
		wrong = append(wrong, err)
		err = nil
	}
	wrong = append(wrong, s.orderOfParts(), s.unused(manifestLines))
	return s, errors.Join(wrong...)
}

// at is a place in the script.
func (s *script) at(line int) string { return fmt.Sprintf("%s:%d", s.path, line) }

func (s *script) mistake(line int, format string, args ...any) error {
	return fmt.Errorf("%s: %w", s.at(line), fmt.Errorf(format, args...))
}

// readStory finds the line of the story that names the operator.
func (s *script) readStory() error {
	n := 0
	for line := range strings.Lines(string(s.archive.Comment)) {
		n++
		name, is := strings.CutPrefix(strings.TrimSpace(line), operatorLine)
		if !is {
			continue
		}
		if name = strings.TrimSpace(name); name == "" || s.operator != "" {
			return s.mistake(n, "%q: a story names one operator, as %s NAME on a line of its own", strings.TrimSpace(line), operatorLine)
		}
		s.operator = name
	}
	return nil
}

// orderOfParts checks that parts come in an order that can be played.
func (s *script) orderOfParts() error {
	var wrong []error
	acted := false
	for i, one := range s.parts {
		switch {
		case one.name == sectionGiven && i > 0:
			wrong = append(wrong, s.mistake(one.line, "a section %s comes first and once: what comes later is a step", sectionGiven))
		case one.then() && !acted:
			wrong = append(wrong, s.mistake(one.line, "nothing has been done yet: %q comes behind a section %s", one.name, sectionWhen))
		}
		acted = acted || one.name == sectionWhen
	}
	if !acted {
		wrong = append(wrong, s.mistake(1, "there is no section %s: it has the steps, of which the first is usually start", sectionWhen))
	}
	return errors.Join(wrong...)
}

// unused finds manifests that no step names: most are meant to be something else.
func (s *script) unused(manifestLines map[string]int) error {
	named := map[string]bool{}
	for _, one := range s.parts {
		if one.name != sectionWhen {
			continue
		}
		for _, line := range one.lines {
			for word := range strings.FieldsSeq(line) {
				named[word] = true
			}
		}
	}
	var wrong []error
	for name, line := range manifestLines {
		if !named[name] {
			wrong = append(wrong, s.mistake(line, "no step names the manifest %q: apply it or take it away; other sections are %s", name,
				strings.Join([]string{sectionGiven, sectionWhen, thenCalls, thenWrites, thenObjects, thenOutcomes}, ", ")))
		}
	}
	slices.SortFunc(wrong, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errors.Join(wrong...)
}

// document is one document of a section of YAML.
type document struct {
	line int // of the file, where it begins
	text string
}

// documents are those of a section that are not empty.
func (p part) documents() []document {
	var found []document
	current := document{line: p.line + 1}
	n := p.line
	for line := range strings.Lines(p.text + documentBreak) {
		n++
		if strings.TrimRight(line, "\r\n") != documentBreak {
			current.text += line
			continue
		}
		if strings.TrimSpace(current.text) != "" {
			found = append(found, current)
		}
		current = document{line: n + 1}
	}
	return found
}

func (s *script) readManifest(one part) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	var wrong []error
	for _, found := range one.documents() {
		object, err := found.object()
		if err != nil {
			wrong = append(wrong, s.mistake(found.line, "%w: %q is to hold objects of Kubernetes", err, one.name))
			continue
		}
		if object != nil {
			objects = append(objects, object)
		}
	}
	if len(objects) == 0 && len(wrong) == 0 {
		return nil, s.mistake(one.line, "%q is empty: write the objects there, in YAML, or take it away", one.name)
	}
	return objects, errors.Join(wrong...)
}

// object reads the document; nil for one that has comments only.
func (d document) object() (*unstructured.Unstructured, error) {
	// The lines before it make the parser count as the file does.
	text, err := yaml.YAMLToJSONStrict([]byte(strings.Repeat("\n", d.line-1) + d.text))
	if err != nil {
		return nil, fmt.Errorf("this cannot be read: %w", err)
	}
	if string(text) == "null" {
		return nil, nil
	}
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(text); err != nil {
		return nil, fmt.Errorf("this is no object: %w", err)
	}
	for field, value := range map[string]string{"apiVersion": object.GetAPIVersion(), "metadata.name": object.GetName()} {
		if value == "" {
			return nil, fmt.Errorf("an object needs %s", field)
		}
	}
	return object, nil
}
