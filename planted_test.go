package einmal_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/einmaltest"
)

// plantedVariable names the bug that a build with planted bugs has.
const plantedVariable = "EINMAL_PLANTED"

// plant is a bug: a line of the engine, what a careless change would make of it, the test that finds it, and words of
// what that says. In the changed line planted(BUG) tells whether the bug is wanted; testdata/planted has what else is
// needed.
type plant struct {
	name, file, line, changed string
	test, says                string
}

// plants are the bugs that this framework promises not to have, each in the line that keeps the promise.
func plants() []plant {
	const explored = "TestWhateverGoesWrongTheEndIsTheSame/record_in_the_status"
	const askingEffects = "TestWhateverGoesWrongAnEffectIsMadeOnce/stop,_record_in_the_status"
	return []plant{
		{
			name: "the finalizer is written after the effect", file: "pass.go",
			line: `if p.plan.Finalizer == handler.Add {`,
			changed: `if late := planted(BUG); late && p.plan.Finalizer == handler.Add {
				p.plan = p.pure.Decide(p.asMarked())
				defer p.markLate(ctx)
			} else if p.plan.Finalizer == handler.Add {`,
			test: explored, says: "registered: the outcome differs",
		},
		{
			name: "the record is saved before the handler ran", file: "run.go",
			line:    `if err := p.saveFirst(ctx, w, run); err != nil || p.memory == nil {`,
			changed: `if planted(BUG) { p.saveEarly(ctx, w, run) }; if err := p.saveFirst(ctx, w, run); err != nil || p.memory == nil {`,
			test:    explored, says: "differs",
		},
		{
			name: "the count of attempts is lost at a restart", file: "pass.go",
			line:    `p.record, p.stored = found, stored`,
			changed: `if !known && found != nil && planted(BUG) { found = uncounted(found) }; p.record, p.stored = found, stored`,
			test:    explored, says: "attempts that are recorded count",
		},
		{
			name: "a stale read is trusted after a write", file: "pass.go",
			line:    `kube.Older(cached.GetResourceVersion(), last.newest)`,
			changed: `!planted(BUG) && kube.Older(cached.GetResourceVersion(), last.newest)`,
			test:    explored, says: "what is done is not to be done again",
		},
		{
			name: "the status is written by a full update", file: "save.go",
			line:    `p.base, p.exact = answer, true`,
			changed: `if next.subresource == statusResource && planted(BUG) { answer = p.replaceStatus(ctx, answer, next.edits, text) }; p.base, p.exact = answer, true`,
			test:    explored, says: "what others write is to stay",
		},
		{
			name: "a merge patch lands on an object that was re-created", file: "save.go",
			line: `answer, err := p.objects.Patch(ctx, p.key, next.subresource, next.document.Operations())`,
			changed: `operations := next.document.Operations()
				if planted(BUG) { operations = withoutTests(operations) }
				answer, err := p.objects.Patch(ctx, p.key, next.subresource, operations)`,
			test: "TestALateWriteDoesNotLandOnAReCreatedObject", says: "the handler of the old object wrote into the new one",
		},
		{
			name: "Lost is decided from the finalizer", file: "pass.go",
			line:    `Settled:    p.settled(),`,
			changed: `Settled:    p.settled() || p.marked() && planted(BUG),`,
			test:    explored, says: "differs",
		},
		{
			name: "an effect is called before its intent is stored", file: "effects.go",
			line:    `notify(s.declared)`,
			changed: `if notify(s.declared); planted(BUG) { return intent, nil }`,
			test:    askingEffects, says: "want one call more at most",
		},
		{
			name: "an intent that is found is forgotten", file: "effects.go",
			line:    `if found.Intent = s.done[id].Intent; found.Intent != nil {`,
			changed: `if found.Intent = s.done[id].Intent; planted(BUG) { found.Intent = nil } else if found.Intent != nil {`,
			test:    askingEffects, says: "accounts: the outcome differs",
		},
	}
}

// Each promise has a test that fails when a change breaks it: the bugs are planted into a build of these tests, one at a
// time, and must be found.
func TestPlantedBugsAreFound(t *testing.T) {
	program := buildPlanted(t)
	tests := map[string]bool{}
	for _, bug := range plants() {
		tests[bug.test] = true
		t.Run(bug.name, func(t *testing.T) { findPlanted(t, program, bug) })
	}
	t.Run("without a bug nothing is found", func(t *testing.T) {
		for test := range tests {
			if said, err := runPlanted(t, program, "", test); err != nil {
				t.Errorf("%s fails by itself:\n%s", test, said)
			}
		}
	})
}

func findPlanted(t *testing.T, program string, bug plant) {
	t.Helper()
	said, err := runPlanted(t, program, bug.name, bug.test)
	if err == nil {
		t.Fatalf("%s does not find it", bug.test)
	}
	if _, finding, found := strings.Cut(said, "when this goes wrong: "); found {
		t.Logf("found when this goes wrong: %s", finding)
	}
	if !strings.Contains(said, bug.says) {
		t.Errorf("%s fails, but does not say %q:\n%s", bug.test, bug.says, said)
	}
}

// runPlanted runs one test of the build with planted bugs.
func runPlanted(t *testing.T, program, bug, test string) (said string, err error) {
	t.Helper()
	pattern := "^" + strings.ReplaceAll(test, "/", "$/^") + "$"
	run := exec.CommandContext(t.Context(), program, "-test.run", pattern)
	run.Env = append(os.Environ(), plantedVariable+"="+bug)
	output, err := run.CombinedOutput()
	if strings.Contains(string(output), "no tests to run") {
		t.Fatalf("there is no test %s", test)
	}
	return string(output), err
}

// buildPlanted builds these tests with all the bugs in, each behind a switch.
func buildPlanted(t *testing.T) string {
	t.Helper()
	folder, replaced := t.TempDir(), map[string]string{}
	add := func(name, text string) {
		original, err := filepath.Abs(filepath.Join("internal", "engine", name))
		if err != nil {
			t.Fatal(err)
		}
		replaced[original] = filepath.Join(folder, name)
		if err := os.WriteFile(replaced[original], []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	helpers, err := os.ReadFile("testdata/planted/planted.go")
	if err != nil {
		t.Fatal(err)
	}
	add("planted.go", string(helpers))
	for name, text := range withBugs(t) {
		add(name, text)
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		t.Fatal(err)
	}
	list, program := filepath.Join(folder, "overlay.json"), filepath.Join(folder, "planted.test")
	if err := os.WriteFile(list, overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	build := exec.CommandContext(t.Context(), "go", "test", "-c", "-overlay", list, "-o", program, ".")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the tests with planted bugs: %v\n%s", err, output)
	}
	return program
}

// withBugs returns the changed files of the engine.
func withBugs(t *testing.T) map[string]string {
	t.Helper()
	texts := map[string]string{}
	for _, bug := range plants() {
		text, read := texts[bug.file]
		if !read {
			original, err := os.ReadFile(filepath.Join("internal", "engine", bug.file))
			if err != nil {
				t.Fatal(err)
			}
			text = string(original)
		}
		if strings.Count(text, bug.line) != 1 {
			t.Fatalf("%s: %s holds this line %d times, want once; plant the bug where the promise is kept now: %s",
				bug.name, bug.file, strings.Count(text, bug.line), bug.line)
		}
		texts[bug.file] = strings.Replace(text, bug.line, strings.ReplaceAll(bug.changed, "BUG", strconv.Quote(bug.name)), 1)
	}
	return texts
}

// A handler that takes its time writes nothing into an object that was deleted and re-created meanwhile (scenario 20,
// design §6: a late write must not land).
func TestALateWriteDoesNotLandOnAReCreatedObject(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		w.Start(func(*einmaltest.Process) *einmal.Operator {
			op := newTestOperator(w)
			einmal.For[Widget](op).OnCreate("slow", func(_ context.Context, c *einmal.Change[Widget]) error {
				<-time.After(10 * time.Second)
				c.Object.Status.Phase = c.Object.Spec.Color
				return nil
			})
			return op
		})
		made := func(color string) *Widget {
			return &Widget{ObjectMeta: metav1.ObjectMeta{Name: "one", Namespace: "default"}, Spec: WidgetSpec{Color: color}}
		}
		w.Create(made("red"))
		w.Advance(5 * time.Second)
		w.Delete(made("red"))
		w.Create(made("blue"))
		for _, phase := range []string{"", "blue"} {
			w.Advance(8 * time.Second)
			found := made("")
			if w.Get(found); found.Status.Phase != phase {
				w.Errorf("the phase is %q, want %q: the handler of the old object wrote into the new one", found.Status.Phase, phase)
			}
		}
	})
}
