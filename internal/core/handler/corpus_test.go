package handler_test

import (
	"bytes"
	stdjson "encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/einmal-operators/einmal/internal/core/cause"
	"github.com/einmal-operators/einmal/internal/core/filter"
	"github.com/einmal-operators/einmal/internal/core/handler"
	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/record"
)

const (
	// corpusFolder holds the records that each release wrote, in a folder per release. Its README describes how they are maintained.
	corpusFolder = "../record/testdata"
	// corpusRelease is the folder of the release in development.
	corpusRelease = "v1"
	// corpusVariable makes the tests write the files that are missing.
	corpusVariable = "EINMAL_WRITE_CORPUS"
)

// kept is one file of the corpus: a record as a release wrote it, the object at that moment, and what the release decided from the
// two.
type kept struct {
	About  string `json:"about"`
	Record string `json:"record"`
	// Handlers are declared with an id, a verb and the arguments of declared, separated by blanks.
	Handlers []string    `json:"handlers"`
	Essence  object.Body `json:"essence"`
	// The other fields of the object and of the process are as in State.
	Deleting bool      `json:"deleting,omitempty"`
	Marked   bool      `json:"marked,omitempty"`
	Recreate string    `json:"recreate,omitempty"`
	Written  time.Time `json:"written"`
	// Decided holds the decisions, by what has happened since.
	Decided map[string]keptDecision `json:"decided"`
}

type keptDecision struct {
	Cause     string    `json:"cause"`
	Finalizer string    `json:"finalizer,omitempty"`
	Runs      []string  `json:"runs,omitempty"`
	Wake      time.Time `json:"wake,omitzero"`
	Tidied    bool      `json:"tidied,omitempty"`
}

// keep returns the file for the state that a life has reached.
func keep(l *life, about string) kept {
	k := kept{
		About: about, Record: l.stored, Essence: l.essence,
		Deleting: l.deleting, Marked: l.marked, Recreate: l.recreate, Written: l.now,
	}
	for _, declared := range l.kind.Handlers {
		words := []string{declared.ID, string(declared.Verb)}
		for _, field := range declared.Fields {
			words = append(words, field.String())
		}
		if only, is := declared.Scope.(filter.Field); is {
			want, _ := only.Match.Want()
			words = append(words, fmt.Sprintf("%s=%s", only.Path, want))
		}
		if declared.AtCreation {
			words = append(words, atCreation)
		}
		k.Handlers = append(k.Handlers, strings.Join(words, " "))
	}
	k.Decided = k.decide(l.t)
	return k
}

// decide returns the decisions of the current code, each in a process that has just started.
func (k kept) decide(t *testing.T) map[string]keptDecision {
	t.Helper()
	decoded, err := record.Decode(k.Record)
	if err != nil {
		t.Fatal(err)
	}
	state := handler.State{
		UID: decoded.UID, APIVersion: decoded.APIVersion, Essence: k.Essence, Record: &decoded,
		Deleting: k.Deleting, Marked: k.Marked, Recreate: k.Recreate, Inherited: true, Now: k.Written,
	}
	later, edited, deleted, asked := state, state, state, state
	later.Now = state.Now.Add(time.Hour)
	edited.Essence = object.With(state.Essence, object.Path{"spec", "size"}, int64(1000))
	deleted.Deleting = true
	asked.Recreate = "asked"
	return map[string]keptDecision{
		"nothing": k.decideOne(state), "an hour": k.decideOne(later), "an edit of spec.size": k.decideOne(edited),
		"a deletion": k.decideOne(deleted), "a new token": k.decideOne(asked),
	}
}

func (k kept) decideOne(state handler.State) keptDecision {
	kind := handler.Kind{}
	for _, saved := range k.Handlers {
		words := strings.Fields(saved)
		kind.Handlers = append(kind.Handlers, declared(words[0], cause.Cause(words[1]), words[2:]...))
	}
	plan := kind.Decide(state)
	decision := keptDecision{
		Cause: string(plan.Cause), Wake: plan.Wake, Tidied: plan.Tidied,
		Finalizer: map[handler.Finalizer]string{handler.Add: "add", handler.Remove: "remove"}[plan.Finalizer],
	}
	for _, run := range plan.Runs {
		decision.Runs = append(decision.Runs, describe(run, state.Essence))
	}
	return decision
}

// The corpus holds records written by each release. Every later release must decide the same from them.
func TestRecordsOfEachReleaseAreDecidedFromAsThen(t *testing.T) {
	files, err := fs.Glob(os.DirFS(corpusFolder), "*/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(file, ".json"), func(t *testing.T) {
			k := readKept(t, file)
			if diff := cmp.Diff(k.Decided, k.decide(t)); diff != "" {
				t.Errorf("%s: the decision differs: %s", k.About, diff)
			}
		})
	}
}

// The corpus must hold what the current release writes, since it stands for the records that exist in clusters.
func TestTheCorpusHoldsWhatThisReleaseWrites(t *testing.T) {
	for _, s := range stories() {
		t.Run(s.name, func(t *testing.T) {
			today := keep(s.live(t), s.about)
			file := path.Join(corpusRelease, s.name+".json")
			if _, err := os.Stat(filepath.Join(corpusFolder, file)); err != nil {
				if os.Getenv(corpusVariable) == "" {
					t.Fatalf("the file is missing: %v\nrun %s=1 go test ./internal/core/handler to write it", err, corpusVariable)
				}
				writeKept(t, file, today)
			}
			then := readKept(t, file)
			if diff := cmp.Diff(then.decoded(t), today.decoded(t)); diff != "" {
				t.Errorf("the record differs from the corpus; if that is intended, see %s: %s", corpusFolder+"/README.md", diff)
			}
			if !strings.Contains(then.Record, `"packed"`) && then.Record != today.Record { // The compression depends on the library.
				t.Errorf("the text differs, which would cause a write at every restart:\n%s\n%s", then.Record, today.Record)
			}
		})
	}
}

func (k kept) decoded(t *testing.T) record.Record {
	t.Helper()
	r, err := record.Decode(k.Record)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func readKept(t *testing.T, file string) kept {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(corpusFolder, filepath.FromSlash(file)))
	if err != nil {
		t.Fatal(err)
	}
	var k kept
	if err := json.Unmarshal(text, &k); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return k
}

func writeKept(t *testing.T, file string, k kept) {
	t.Helper()
	var text bytes.Buffer
	encoder := stdjson.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(k); err != nil {
		t.Fatal(err)
	}
	at := filepath.Join(corpusFolder, filepath.FromSlash(file))
	if err := os.MkdirAll(filepath.Dir(at), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(at, text.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}
