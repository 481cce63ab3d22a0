package einmaltest

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/internal/testkit/simulation"
)

// Subjects are what scripts can be about, by the names under which scripts know them. Each function is called for
// each run of a script, and makes new fakes of outside systems. One that needs World.React calls World.Install
// with its operator before.
type Subjects map[string]func(w *World) Subject

// Subject is an operator with what scripts can do and see beside it.
type Subject struct {
	// Operator makes the operator of each process, as for World.Start.
	Operator func(p *Process) *einmal.Operator
	// Versions are other versions of it, by the names under which the steps start and restart know them: such as the next
	// release. They have the same identity and kinds.
	Versions map[string]func(p *Process) *einmal.Operator
	// Steps are steps that only scripts about this operator know, by their first word; they get the words that follow.
	// With them a script lets an outside system fail, or does something with the World that it has no step for.
	Steps map[string]func(words ...string) error
	// Outcomes says how things outside of the cluster are now, by name. It may be nil. Scripts compare it in the section
	// then outcomes, as fmt.Sprint gives it, and ExploreScripts as World.Outcome does.
	Outcomes func() map[string]any
}

// ScriptOption changes what Scripts does.
type ScriptOption func(*scriptSettings)

type scriptSettings struct{ rewrite bool }

// Rewrite makes Scripts write what it finds into the sections that do not hold, where it is true, instead of failing. All
// other lines of a script stay as they are. It is meant for a flag of the test.
func Rewrite(yes bool) ScriptOption { return func(s *scriptSettings) { s.rewrite = yes } }

// Scripts plays each scenario script whose path matches the pattern, as a subtest named for its file, and compares what
// came of it with what the script says.
//
// A script is a text file in the txtar format: a story, and then sections that begin with a line "-- NAME --".
//
//	A widget is created while its operator runs (scenario 1).
//
//	operator: widgets
//	-- when --
//	start
//	apply one.yaml
//	wait 1m
//	-- then calls --
//	make of default/one (create, attempt 1): done
//	-- one.yaml --
//	...
//
// The line operator: names the Subject; it can be left out where there is only one. The sections are:
//
//   - given: objects, in YAML, that are there before the first step. They keep their status. It comes first, if at all.
//   - when: steps, one a line; what follows a # at the beginning of a line is a comment. After each step the operator does
//     all that it can do without time going by.
//   - then calls, then writes: what the operator did since the last when that follows a then, as Call.String and World.Writes
//     give it. The lines about one name, such as default/one, stand in the order of time, and names in the order of the
//     alphabet: which of two objects comes first is left to chance. Calls of an event handler for alike events of an object
//     are one line, where the first was, since events may be merged. An empty section says: nothing.
//   - then objects: all objects that are there now, without times, uids and revisions, with conditions in the order of
//     their types, and records and Secrets told by what matters of them.
//   - then outcomes: one line "NAME: VALUE" for each of the subject's outcomes.
//   - any other name: a manifest that steps name.
//
// What has no section is not compared. A then can be followed by another when. The steps are:
//
//	start [VERSION]        start the operator, or a version of it, and give it a second to begin
//	stop                   stop it in order
//	restart [VERSION]      stop it in order and start it again
//	kill                   end it without order: what it has not written yet is lost
//	create MANIFEST        create its objects; in the namespace default where they name none
//	apply MANIFEST         apply its objects, as kubectl apply --server-side does
//	replace MANIFEST       put them in the place of those that are there, as kubectl replace does
//	patch KIND NAME [SUBRESOURCE] {JSON}    change an object by a JSON merge patch
//	delete KIND NAME       ask for the deletion of an object
//	wait DURATION          let time go by: 90s, 10m, 2h
//
// and those of the Subject. KIND is as for kubectl: Widget, widgets, widgets.example.com; NAME can be NAMESPACE/NAME.
//
// Scripts run several at a time, if the test allows it. A script that cannot be read or played fails with its file and line.
func Scripts(t *testing.T, pattern string, subjects Subjects, options ...ScriptOption) {
	t.Helper()
	var settings scriptSettings
	for _, option := range options {
		option(&settings)
	}
	simulation.PrepareProcess()
	definitions := &simulation.Definitions{}
	eachScript(t, pattern, func(t *testing.T, s *script) {
		t.Parallel()
		found := s.check(t, subjects, simulation.Setup{Definitions: definitions, Log: logTo(t)}, settings)
		for _, failure := range found {
			t.Error(failure)
		}
	})
}

// ExploreScripts plays the steps of each scenario script as Explore plays a scenario, as a subtest named for its file.
// What scripts expect is not compared: calls and writes are others where something goes wrong, and objects and outcomes
// are compared by Explore. Ten minutes go by after the last step. A script that stops the operator while it may have
// something to write is best explored without Outages and Wipes: what it did then is forgotten.
func ExploreScripts(t *testing.T, pattern string, subjects Subjects, options ...Option) {
	t.Helper()
	eachScript(t, pattern, func(t *testing.T, s *script) {
		Explore(t, s.explored(subjects), options...)
	})
}

// eachScript calls do with each script, in a subtest of its own.
func eachScript(t *testing.T, pattern string, do func(*testing.T, *script)) {
	t.Helper()
	paths, err := filepath.Glob(pattern)
	if err != nil || len(paths) == 0 {
		t.Fatalf("no script matches %s (%v): the pattern is one of path/filepath, seen from the folder of the test", pattern, err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			s, err := readScript(path)
			if err != nil {
				t.Fatal(err)
			}
			do(t, s)
		})
	}
}

// check plays the script, and returns what is not as it says. With the setting rewrite it writes that into the script.
func (s *script) check(t *testing.T, subjects Subjects, setup simulation.Setup, settings scriptSettings) []string {
	t.Helper()
	var p *performance
	found := play(t, func(w *World) {
		p = &performance{World: w, script: s, subjects: subjects, rewrite: settings.rewrite}
		p.play(slices.Values(s.parts))
	}, setup)
	if len(found.failures) > 0 || p == nil || len(p.rewritten) == 0 {
		return found.failures
	}
	for i, text := range p.rewritten {
		s.archive.Files[i].Data = []byte(text)
	}
	if err := os.WriteFile(s.path, txtar.Format(s.archive), 0o600); err != nil {
		return []string{fmt.Sprintf("rewrite the script: %v", err)}
	}
	for _, i := range slices.Sorted(maps.Keys(p.rewritten)) {
		t.Logf("%s: %s is rewritten", s.path, s.archive.Files[i].Name)
	}
	return nil
}

// explored is the scenario without what the script expects.
func (s *script) explored(subjects Subjects) Scenario {
	return func(w *World) {
		p := &performance{World: w, script: s, subjects: subjects}
		p.play(func(yield func(part) bool) {
			for _, one := range s.parts {
				if !one.then() && !yield(one) {
					return
				}
			}
		})
		w.Advance(settling)
		for name, value := range p.outcomes() {
			w.Outcome(name, value)
		}
	}
}

// performance is one run of a script.
type performance struct {
	*World
	script   *script
	subjects Subjects
	subject  Subject
	// callsBefore, writesBefore are those that earlier parts have compared.
	callsBefore, writesBefore int

	rewrite   bool
	rewritten map[int]string // the new text of sections, by their place in the archive
}

// play plays parts of the script, one after the other. What is wrong with a step is found before the first is done.
func (p *performance) play(parts func(func(part) bool)) {
	p.Helper()
	if err := p.cast(); err != nil {
		p.Fatalf("%s: %v", p.script.path, err)
	}
	p.Install(p.subject.Operator)
	actions := map[int][]action{}
	var wrong []error
	for one := range parts {
		found, err := p.compile(one)
		actions[one.section] = found
		wrong = append(wrong, err)
	}
	if err := errors.Join(wrong...); err != nil {
		p.Fatal(err)
	}
	compared := false
	for one := range parts {
		if one.then() {
			p.compare(one)
			compared = true
			continue
		}
		if compared {
			p.callsBefore, p.writesBefore, compared = len(p.Calls()), len(p.Writes()), false
		}
		for _, act := range actions[one.section] {
			if err := act.do(p); err != nil {
				p.Fatalf("%s: %s: %v", p.script.at(act.line), act.text, err)
			}
			p.Advance(0)
		}
	}
}

// cast makes the subject that the script is about.
func (p *performance) cast() error {
	name := p.script.operator
	if name == "" && len(p.subjects) == 1 {
		for only := range p.subjects {
			name = only
		}
	}
	made, known := p.subjects[name]
	all := strings.Join(slices.Sorted(maps.Keys(p.subjects)), ", ")
	switch {
	case known:
		p.subject = made(p.World)
		return nil
	case name == "":
		return fmt.Errorf("the operator is not named: the story needs a line %s with one of %s", operatorLine, all)
	default:
		return fmt.Errorf("there is no operator %q, but %s", name, all)
	}
}

func (p *performance) outcomes() map[string]any {
	if p.subject.Outcomes == nil {
		return nil
	}
	return p.subject.Outcomes()
}
