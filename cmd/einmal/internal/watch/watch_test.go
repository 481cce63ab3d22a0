package watch_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal-operators/einmal/cmd/einmal/internal/watch"
)

func TestChangesAreReportedOnceWhenTheyHaveSettled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		in, out := make(chan string), make(chan []string)
		go watch.Settle(ctx, in, out)
		begin := time.Now()
		for range 5 { // every 200 ms, so the quiet period does not pass in between
			in <- "b.go"
			in <- "a.go"
			<-time.After(200 * time.Millisecond)
		}
		got := <-out
		if diff := cmp.Diff([]string{"a.go", "b.go"}, got); diff != "" {
			t.Errorf("report (-want +got):\n%s", diff)
		}
		if took := time.Since(begin); took != 1100*time.Millisecond {
			t.Errorf("reported after %s, want 300 ms after the last change", took)
		}
		select {
		case again := <-out:
			t.Errorf("reported again: %v", again)
		case <-time.After(time.Hour):
		}
		cancel()
		synctest.Wait()
	})
}

func TestChangesAccumulateWhileTheReceiverIsBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		in, out := make(chan string), make(chan []string)
		go watch.Settle(ctx, in, out)
		in <- "a.go"
		<-time.After(time.Minute) // the report is not received
		in <- "b.go"
		if diff := cmp.Diff([]string{"a.go", "b.go"}, <-out); diff != "" {
			t.Errorf("report (-want +got):\n%s", diff)
		}
		cancel()
		synctest.Wait()
	})
}

func TestRealFilesAreWatched(t *testing.T) {
	root := t.TempDir()
	watcher, err := watch.New(t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	relevant := func(file string) bool { return !strings.HasSuffix(file, ".txt") }
	if err := watcher.Watch([]string{root, root + "/not/there"}, relevant); err != nil {
		t.Fatal(err)
	}
	changed := make(chan []string)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		watcher.Run(ctx, changed)
	}()
	expect := func(want ...string) {
		t.Helper()
		select {
		case got := <-changed:
			for i := range got {
				got[i] = strings.TrimPrefix(got[i], root+"/")
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("report (-want +got):\n%s", diff)
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("no report of %v", want)
		}
	}
	put := func(name string) {
		t.Helper()
		must(t, os.WriteFile(filepath.Join(root, name), []byte(name), 0o600))
	}
	put("notes.txt")
	put("main.go")
	expect("main.go")
	// Editors may write a new file and rename it to the old name.
	put("new")
	must(t, os.Rename(root+"/new", root+"/main.go"))
	expect("main.go", "new")
	must(t, os.Mkdir(root+"/part", 0o755))
	expect("part")
	must(t, os.MkdirAll(root+"/part/of/the/whole", 0o755))
	<-changed
	// Created directories are still watched after the set of directories has changed.
	must(t, watcher.Watch([]string{root}, relevant))
	put("part/of/the/whole/part.go")
	expect("part/of/the/whole/part.go")
	cancel()
	<-done
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
