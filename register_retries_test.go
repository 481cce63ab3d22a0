package einmal_test

import (
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/einmal-operators/einmal"
)

// Design §4: mistakes in the options of retries name kind, handler and remedy.
func TestMistakesInRetriesComeBackAtOnce(t *testing.T) {
	op := einmal.New("op.example.com", einmal.Scheme(addTestKinds), einmal.MaxAttempts(1))
	widgets := einmal.For[Widget](op)
	widgets.OnCreate("none", nothing[Widget], einmal.MaxAttempts(0))
	widgets.OnCreate("no-time", nothing[Widget], einmal.Timeout(0))
	widgets.OnCreate("shrinks", nothing[Widget], einmal.Backoff(time.Minute, time.Second))
	widgets.OnCreate("no-policy", nothing[Widget], einmal.OnError(7))
	widgets.OnCreate("no-deletion", nothing[Widget], einmal.ReleaseOnFailure())
	widgets.OnEvent("no-retries", nothing[Widget], einmal.MaxAttempts(2))
	widgets.Reconcile("no-record", nothing[Widget], einmal.FormerlyKnownAs("old"))
	widgets.OnUpdate("no-name", nothing[Widget], einmal.FormerlyKnownAs())
	widgets.OnUpdate("bad-name", nothing[Widget], einmal.FormerlyKnownAs("bad name"))
	widgets.OnUpdate("itself", nothing[Widget], einmal.FormerlyKnownAs("itself"))
	widgets.OnUpdate("still-there", nothing[Widget], einmal.FormerlyKnownAs("none"))
	widgets.OnUpdate("one", nothing[Widget], einmal.FormerlyKnownAs("shared"))
	widgets.OnUpdate("two", nothing[Widget], einmal.FormerlyKnownAs("shared"))
	widgets.OnDelete("fine", nothing[Widget], einmal.ReleaseOnFailure(), einmal.MaxAttempts(3), einmal.Timeout(time.Hour),
		einmal.Backoff(time.Second, time.Second), einmal.OnError(einmal.Fail), einmal.FormerlyKnownAs("good", "better"))
	widgets.OnResume("also-fine", nothing[Widget], einmal.MaxAttempts(1), einmal.OnError(einmal.Ignore))

	err := op.Run(t.Context(), &rest.Config{Host: "http://127.0.0.1:1"}, einmal.RunOptions{})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{
		"option MaxAttempts does not belong to New", "handler none of Widget: option MaxAttempts: 0",
		"handler no-time of Widget: option Timeout: 0s", "handler shrinks of Widget: option Backoff: from 1m0s to 1s",
		"handler no-policy of Widget: option OnError: 7", "handler no-deletion of Widget: option ReleaseOnFailure",
		"handler no-retries of Widget: options of retries", "handler no-record of Widget: option FormerlyKnownAs: nothing",
		"handler no-name of Widget: option FormerlyKnownAs: name the ids", `"bad name" was never an id`,
		`"itself" is the id of handler "itself" already`, `"none" is the id of handler "none" already`,
		`handler "two" of Widget: option FormerlyKnownAs: "shared" is the id of handler "one" already`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("not told: %s", want)
		}
	}
	if strings.Contains(err.Error(), "fine") {
		t.Error("a right declaration is reported")
	}
	if t.Failed() {
		t.Logf("told:\n%v", err)
	}
}
