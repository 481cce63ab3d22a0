package einmaltest

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/internal/testkit/simulation"
)

// subjectsOfTests are an operator that greets each new ConfigMap, and one that does nothing yet. The next version of the
// first bids farewell too.
func subjectsOfTests() Subjects {
	greet := func(op *einmal.Operator) *einmal.Kind[corev1.ConfigMap] {
		configs := einmal.For[corev1.ConfigMap](op)
		configs.OnCreate("greet", func(_ context.Context, c *einmal.Change[corev1.ConfigMap]) error {
			c.Object.Data = map[string]string{"greeting": "hello " + c.Object.Name}
			return nil
		})
		return configs
	}
	return Subjects{
		"greeter": func(*World) Subject {
			said := ""
			return Subject{
				Operator: func(*Process) *einmal.Operator {
					op := einmal.New("greeter.example.com")
					greet(op)
					return op
				},
				Versions: map[string]func(*Process) *einmal.Operator{"next": func(*Process) *einmal.Operator {
					op := einmal.New("greeter.example.com")
					greet(op).OnDelete("farewell", func(context.Context, *einmal.Change[corev1.ConfigMap]) error { return nil })
					return op
				}},
				Steps: map[string]func(...string) error{"say": func(words ...string) error {
					if said = strings.Join(words, " "); said == "" {
						return errors.New("say what")
					}
					return nil
				}},
				Outcomes: func() map[string]any { return map[string]any{"said": said} },
			}
		},
		"idle": func(*World) Subject {
			return Subject{Operator: func(*Process) *einmal.Operator { return einmal.New("idle.example.com") }}
		},
	}
}

const greeted = `A config is greeted.

operator: greeter

-- given --
apiVersion: v1
kind: ConfigMap
metadata: {name: b}

-- when --
start
apply a.yaml
# It takes its time.
wait 1m

-- then calls --
# In any order.
greet of default/b (create, attempt 1): done
greet of default/a (create, attempt 1): done

-- then objects --
apiVersion: v1
kind: ConfigMap
metadata: # the order of keys is not compared either
  name: b
  namespace: default
  annotations: {greeter.example.com/record: 'seen by all: {"data":{"greeting":"hello b"}}'}
data: {greeting: hello b}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: a
  namespace: default
  annotations: {greeter.example.com/record: 'seen by all: {"data":{"greeting":"hello a"}}'}
data: {greeting: hello a}

-- when --
say good bye
restart next
delete configmap a
wait 1m

-- then calls --
farewell of default/a (delete, attempt 1): done

-- then outcomes --
said: good bye

-- a.yaml --
apiVersion: v1
kind: ConfigMap
metadata: {name: a}
`

// writeScript writes a script to a file of its own, and returns its path.
func writeScript(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "script.txtar")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// checkScript plays a script, and returns what is wrong with it and its text afterwards.
func checkScript(t *testing.T, text string, options ...ScriptOption) (failures []string, after string) {
	t.Helper()
	path := writeScript(t, text)
	s, err := readScript(path)
	if err != nil {
		return []string{strings.ReplaceAll(err.Error(), path, "script")}, text
	}
	var settings scriptSettings
	for _, option := range options {
		option(&settings)
	}
	simulation.PrepareProcess()
	setup := simulation.Setup{Definitions: &simulation.Definitions{}, Log: slog.New(slog.DiscardHandler)}
	for _, failure := range s.check(t, subjectsOfTests(), setup, settings) {
		failures = append(failures, strings.ReplaceAll(failure, path, "script"))
	}
	written, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return failures, string(written)
}

// A script has given objects, when steps, then calls, writes and final objects.
func TestAScriptThatHoldsPasses(t *testing.T) {
	Scripts(t, writeScript(t, greeted), subjectsOfTests())
}

func TestAScriptThatDoesNotHoldFailsWithTheDifference(t *testing.T) {
	failures, _ := checkScript(t, strings.Replace(greeted, "greet of default/a (create, attempt 1)", "greet of default/a (create, attempt 2)", 1))
	if len(failures) != 1 {
		t.Fatalf("%d failures, want 1: %q", len(failures), failures)
	}
	want := `script:16: then calls: it is not so (- in the script, + now). If what is now is right, let the test rewrite it:
- greet of default/a (create, attempt 2): done
+ greet of default/a (create, attempt 1): done
  greet of default/b (create, attempt 1): done`
	if diff := cmp.Diff(want, failures[0]); diff != "" {
		t.Errorf("the failure (-want +got):\n%s", diff)
	}
}

func TestADifferenceIsShownWithTheLinesAroundIt(t *testing.T) {
	was, is := strings.Fields("a b c d e f g h i j k"), strings.Fields("a b c d e g h X i j k l")
	want := "  ...\n  c\n  d\n  e\n- f\n  g\n  h\n+ X\n  i\n  j\n  k\n+ l"
	if diff := cmp.Diff(want, difference(was, is)); diff != "" {
		t.Errorf("the difference (-want +got):\n%s", diff)
	}
	if got := difference(nil, []string{"a"}); got != "+ a" {
		t.Errorf("nothing and a line: %q", got)
	}
}

func TestRewriteChangesWhatDoesNotHoldAndNothingElse(t *testing.T) {
	const was, is = "# In any order.\ngreet of default/b (create, attempt 1): done\n", ""
	broken := strings.Replace(greeted, was, is, 1)
	failures, after := checkScript(t, broken, Rewrite(true))
	if len(failures) > 0 {
		t.Error(failures)
	}
	want := strings.Replace(broken, "greet of default/a (create, attempt 1): done\n",
		"greet of default/a (create, attempt 1): done\ngreet of default/b (create, attempt 1): done\n", 1)
	if diff := cmp.Diff(want, after); diff != "" {
		t.Errorf("the script (-want +got):\n%s", diff)
	}
	if _, after := checkScript(t, greeted, Rewrite(true)); after != greeted {
		t.Errorf("a script that holds is rewritten:\n%s", cmp.Diff(greeted, after))
	}
}

// Where a step fails, what the script says is not known to be wrong.
func TestAScriptThatCannotBePlayedIsNotRewritten(t *testing.T) {
	broken := strings.Replace(greeted, "delete configmap a", "delete configmap missing", 1)
	broken = strings.Replace(broken, "attempt 1", "attempt 2", 1)
	failures, after := checkScript(t, broken, Rewrite(true))
	if after != broken || len(failures) != 1 || !strings.Contains(failures[0], `script:41: delete configmap missing: configmaps "missing" not found`) {
		t.Errorf("failures %q, and the script is now:\n%s", failures, after)
	}
}

func TestMistakesInScriptsAreToldWithTheirLineAndTheRemedy(t *testing.T) {
	const when = "-- when --\nstart\n"
	for title, test := range map[string]struct{ script, want string }{
		"no such operator":      {"operator: greter\n" + when, `script: there is no operator "greter", but greeter, idle`},
		"operator not named":    {when, "script: the operator is not named: the story needs a line operator: with one of greeter, idle"},
		"two operators":         {"operator: a\noperator: b\n" + when, `script:2: "operator: b": a story names one operator`},
		"nothing happens":       {"operator: greeter\n", "script:1: there is no section when"},
		"then before when":      {"-- then calls --\n" + when, `script:1: nothing has been done yet: "then calls" comes behind a section when`},
		"given in the middle":   {when + "-- given --\n{apiVersion: v1, kind: Secret, metadata: {name: a}}\n", "script:3: a section given comes first and once"},
		"a misspelt section":    {when + "-- then call --\n{apiVersion: v1, kind: Secret, metadata: {name: a}}\n", `script:3: no step names the manifest "then call"`},
		"no YAML":               {"-- given --\na: b\n---\n\na: [\n" + when, "script:4: this cannot be read: yaml: line 5"},
		"no object":             {"-- given --\na: b\n" + when, `script:2: this is no object: Object 'Kind' is missing`},
		"no name":               {"-- given --\n{apiVersion: v1, kind: Secret}\n" + when, "script:2: an object needs metadata.name"},
		"an empty manifest":     {when + "apply a\n-- a --\n# later\n", `script:4: "a" is empty`},
		"a manifest twice":      {when + "apply a\n-- a --\n{apiVersion: v1, kind: Secret, metadata: {name: a}}\n-- a --\n{apiVersion: v1, kind: Secret, metadata: {name: a}}\n", `script:6: line 4 has a section of the name "a" already`},
		"an unknown step":       {"operator: greeter\n" + when + "# So?\njump high\n", `script:5: jump high: there is no step "jump": steps begin with apply, create, delete, kill, patch, replace, restart, start, stop, wait, say`},
		"a missing manifest":    {"operator: greeter\n" + when + "apply a.yaml\n", `script:4: apply a.yaml: the script has no section "a.yaml": write it below a line -- a.yaml --`},
		"no duration":           {"operator: greeter\n" + when + "wait 5\n", "script:4: wait 5: it is written as wait DURATION, such as 90s"},
		"no patch":              {"operator: greeter\n" + when + "patch widget {}\n", "script:4: patch widget {}: it is written as patch KIND NAME [SUBRESOURCE] {JSON}"},
		"no JSON":               {"operator: greeter\n" + when + "patch widget a {b: c}\n", "script:4: patch widget a {b: c}: {b: c} is no JSON"},
		"an unknown kind":       {"operator: greeter\n" + when + "delete widget a\n", `script:4: delete widget a: the kind "widget": no matches for`},
		"started twice":         {"operator: greeter\n" + when + "start\n", "script:4: start: the operator runs already: stop or restart it"},
		"not started":           {"operator: greeter\n" + when + "kill\nstop\n", "script:5: stop: the operator does not run: start it before"},
		"a step of its own":     {"operator: greeter\n" + when + "say\n", "script:4: say: say what"},
		"an unknown version":    {"operator: idle\n" + when + "restart next\n", `script:4: restart next: there is no version "next" of the operator: known are []`},
		"an unreadable section": {"operator: greeter\n" + when + "-- then objects --\na: [\n", "script:5: this cannot be read"},
	} {
		t.Run(title, func(t *testing.T) {
			failures, _ := checkScript(t, test.script)
			if text := strings.Join(failures, "\n"); !strings.Contains(text, test.want) {
				t.Errorf("failures:\n%s\nwant one with:\n%s", text, test.want)
			}
		})
	}
}

// A script is a scenario like others; what it expects of one run is not expected of all.
func TestWhateverGoesWrongAScriptIsExplored(t *testing.T) {
	ExploreScripts(t, writeScript(t, strings.ReplaceAll(greeted, "attempt 1", "attempt 9")), subjectsOfTests(), Without(Outages, Wipes, Clocks, Events))
}
