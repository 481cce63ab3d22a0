package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/einmal-operators/einmal/einmaltest"
)

// TestTheTutorialShowsWhatHappens walks through the steps of the tutorial and compares the operator's log with the lines that the
// pages show.
func TestTheTutorialShowsWhatHappens(t *testing.T) {
	c := sharedCluster(t)
	kubeconfig := c.operatorKubeconfig(t)
	var told strings.Builder
	// step runs the operator of one page; after each thing that the user does, the log is to say a certain thing.
	step := func(program string, deeds ...func(*einmaltest.Program)) {
		running := c.Run(t, program, kubeconfig)
		for _, do := range deeds {
			do(running)
		}
		running.Stop(t)
		told.WriteString(running.Log())
	}
	says := func(words string) func(*einmaltest.Program) {
		return func(running *einmaltest.Program) { running.AwaitLog(t, words) }
	}
	apply := func(*einmaltest.Program) { c.ApplyFolders(t, "config/samples") }
	remove := func(*einmaltest.Program) {
		if err := c.Delete(t.Context(), c.claim(t, "my-claim")); err != nil {
			t.Fatal(err)
		}
	}
	change := func(merge string) func(*einmaltest.Program) { return func(*einmaltest.Program) { c.patch(t, merge) } }
	second := func(*einmaltest.Program) { c.create(t, "second", "5Gi") }

	start := einmaltest.Build(t, "./tutorial/start")
	step(start, says("no objects yet"), apply, says("handler succeeded"))
	step(start, says("all objects are up to date"), apply, remove, says("the object is gone"), apply, says("handler succeeded"))
	step(einmaltest.Build(t, "./tutorial/create"), says("all objects are up to date"), remove, says("the object is gone"), apply, says("handler=create-pvc"), says("handler succeeded"))
	step(einmaltest.Build(t, "./tutorial/update"), says("all objects are up to date"), change(`{"spec":{"size":"2G"}}`), says("handler=resize-pvc"),
		change(`{"metadata":{"labels":{"owner":"me"}}}`), says("handler=relabel-pvc"))
	step(self(t), says("caught up with existing objects"), second, says("handler waits"),
		says(`"handler succeeded" kind=EphemeralVolumeClaim object=default/second generation=1 handler=create-pvc`))

	lines := map[string]bool{}
	for line := range strings.Lines(told.String()) {
		lines[withoutFigures(line)] = true
	}
	for page, shown := range shownLines(t) {
		for _, line := range shown {
			if !lines[withoutFigures(line)] {
				t.Errorf("%s shows a line that the operator did not log: %s", page, line)
			}
		}
	}
	if t.Failed() {
		t.Logf("the operators' logs:\n%s", told.String())
	}
}

// shownLines returns the lines of logs that the pages of the tutorial show, by page.
func shownLines(t *testing.T) map[string][]string {
	t.Helper()
	pages, err := filepath.Glob(filepath.FromSlash("../../docs/tutorial/*.md"))
	if err != nil || len(pages) == 0 {
		t.Fatalf("no pages of the tutorial: %v", err)
	}
	shown, total := map[string][]string{}, 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if strings.HasPrefix(line, "level=") {
				shown[filepath.Base(page)] = append(shown[filepath.Base(page)], strings.TrimSpace(line))
				total++
			}
		}
	}
	if total == 0 {
		t.Fatal("the tutorial shows no logs")
	}
	return shown
}

// withoutFigures cuts from a line of a log what differs from run to run.
func withoutFigures(line string) string {
	return regexp.MustCompile(`\b(time|took|again)=\S+ ?`).ReplaceAllString(strings.TrimSpace(line)+" ", "")
}
