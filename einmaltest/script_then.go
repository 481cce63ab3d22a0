package einmaltest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/einmal-operators/einmal/internal/testkit/simulation"
)

// nothing is what is written into a section where there is nothing.
const nothing = "# nothing"

// compare compares a section of what is expected with what there is.
func (p *performance) compare(one part) {
	p.Helper()
	found, err := p.found(one)
	if err != nil {
		p.Fatalf("%s: %s: %v", p.script.at(one.line), one.name, err)
	}
	expected, err := p.expected(one)
	if err == nil && slices.Equal(lines(expected), lines(found)) {
		return
	}
	if p.rewrite {
		if p.rewritten == nil {
			p.rewritten = map[int]string{}
		}
		p.rewritten[one.section] = p.section(one, found)
		return
	}
	if err != nil {
		p.Error(err)
		return
	}
	p.Errorf("%s: %s: it is not so (- in the script, + now). If what is now is right, let the test rewrite it:\n%s",
		p.script.at(one.line), one.name, difference(lines(expected), lines(found)))
}

// found is what there is: lines, or objects.
func (p *performance) found(one part) ([]string, error) {
	switch one.name {
	case thenCalls:
		return byObject(told(p.Calls()[p.callsBefore:])), nil
	case thenWrites:
		return byObject(p.Writes()[p.writesBefore:]), nil
	case thenOutcomes:
		var found []string
		for name, value := range p.outcomes() {
			found = append(found, fmt.Sprintf("%s: %v", name, value))
		}
		return slices.Sorted(slices.Values(found)), nil
	default:
		objects, err := p.sim.Objects()
		if err != nil {
			return nil, err
		}
		maps.DeleteFunc(objects, func(_, text string) bool { return text == simulation.Unchanged }) // Scripts list what has come of their steps.
		return inOrder(objects), nil
	}
}

// told are the calls, one a line. Events may be merged on their way, so how often one is seen is left to chance: the
// calls of a handler for alike events are one line, at the time of the first.
func told(calls []Call) []string {
	var all []string
	for _, call := range calls {
		line := call.String()
		if call.event() && slices.Contains(all, line) {
			continue
		}
		all = append(all, line)
	}
	return all
}

// expected is what the script says, in the same form.
func (p *performance) expected(one part) ([]string, error) {
	if one.name == thenObjects {
		return p.expectedObjects(one)
	}
	var expected []string
	for _, line := range one.lines {
		expected = append(expected, line)
	}
	switch one.name {
	case thenCalls, thenWrites:
		return byObject(expected), nil
	default:
		return slices.Sorted(slices.Values(expected)), nil
	}
}

func (p *performance) expectedObjects(one part) ([]string, error) {
	texts := map[string]string{}
	for _, written := range one.documents() {
		object, err := written.object()
		if err != nil {
			return nil, p.script.mistake(written.line, "%w: let the test rewrite %q", err, one.name)
		}
		if object == nil {
			continue
		}
		text, err := yaml.Marshal(object.Object)
		if err != nil {
			return nil, p.script.mistake(written.line, "write the object as YAML: %w", err)
		}
		texts[object.GetKind()+" "+object.GetNamespace()+"/"+object.GetName()] = string(text)
	}
	return inOrder(texts), nil
}

// inOrder lists texts in the order of their names.
func inOrder(texts map[string]string) []string {
	var found []string
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		found = append(found, texts[name])
	}
	return found
}

// section is the new text of a section. One that others follow ends with an empty line.
func (p *performance) section(one part, found []string) string {
	text := nothing + "\n"
	switch {
	case one.name == thenObjects && len(found) > 0:
		text = strings.Join(found, documentBreak+"\n")
	case len(found) > 0:
		text = strings.Join(found, "\n") + "\n"
	}
	if one.section < len(p.script.archive.Files)-1 {
		text += "\n"
	}
	return text
}

// byObject brings lines of calls or writes into the order of the names of their objects. Those of one name stay as they are.
func byObject(all []string) []string {
	// HANDLER of OBJECT (REASON, attempt N): OUTCOME, or VERB RESOURCE OBJECT SUBRESOURCE by HANDLER.
	const third = 2
	object := func(line string) string {
		if words := strings.Fields(line); len(words) > third {
			return words[third]
		}
		return ""
	}
	sorted := slices.Clone(all)
	slices.SortStableFunc(sorted, func(a, b string) int { return strings.Compare(object(a), object(b)) })
	return sorted
}

// lines splits texts of several lines, to be compared line by line. YAML folds long texts in quotes at spaces: one with a uid is folded only where a script has
// words in its place. So these are one line.
func lines(texts []string) []string {
	if len(texts) == 0 {
		return nil
	}
	var all []string
	folded := false
	for line := range strings.SplitSeq(strings.Join(texts, "\n"), "\n") {
		if folded {
			all[len(all)-1] += " " + strings.TrimSpace(line)
		} else {
			all = append(all, line)
		}
		last := all[len(all)-1]
		folded = strings.Contains(last, ": '") && strings.Count(last, "'")%2 == 1
	}
	return all
}
