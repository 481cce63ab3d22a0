package einmal_test

import (
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/test/fixture"
)

// Errors about retry options name the kind, the handler and the remedy.
func TestMistakesInRetriesComeBackAtOnce(t *testing.T) {
	op := einmal.New("op.example.com", einmal.Scheme(fixture.AddKinds), einmal.HandlerDefaults(einmal.MaxAttempts(-1), einmal.OwnsStatus("phase")))
	widgets := einmal.For[Widget](op)
	widgets.OnCreate("none", fixture.Nothing[Widget], einmal.MaxAttempts(0))
	widgets.OnCreate("no-time", fixture.Nothing[Widget], einmal.RetryFor(0))
	widgets.OnCreate("shrinks", fixture.Nothing[Widget], einmal.Backoff(time.Minute, time.Second))
	widgets.OnCreate("no-policy", fixture.Nothing[Widget], einmal.OnError(7))
	widgets.OnUpdate("no-name", fixture.Nothing[Widget], einmal.FormerlyKnownAs())
	widgets.OnUpdate("bad-name", fixture.Nothing[Widget], einmal.FormerlyKnownAs("bad name"))
	widgets.OnUpdate("itself", fixture.Nothing[Widget], einmal.FormerlyKnownAs("itself"))
	widgets.OnUpdate("still-there", fixture.Nothing[Widget], einmal.FormerlyKnownAs("none"))
	widgets.OnUpdate("one", fixture.Nothing[Widget], einmal.FormerlyKnownAs("shared"))
	widgets.OnUpdate("two", fixture.Nothing[Widget], einmal.FormerlyKnownAs("shared"))
	widgets.OnDelete("fine", fixture.Nothing[Widget], einmal.ReleaseOnFailure(), einmal.MaxAttempts(3), einmal.RetryFor(time.Hour),
		einmal.Backoff(time.Second, time.Second), einmal.OnError(einmal.PolicyFail), einmal.FormerlyKnownAs("good", "better"))
	widgets.OnResume("also-fine", fixture.Nothing[Widget], einmal.MaxAttempts(1), einmal.OnError(einmal.PolicyIgnore))

	err := op.Run(t.Context(), &rest.Config{Host: "http://127.0.0.1:1"}, einmal.RunOptions{})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{
		"option HandlerDefaults: option MaxAttempts: must be at least 1, got -1", "handler none of Widget: option MaxAttempts: must be at least 1, got 0",
		"handler no-time of Widget: option RetryFor: must be positive, got 0s", "handler shrinks of Widget: option Backoff: initial must be positive and at most longest, got 1m0s and 1s",
		"handler no-policy of Widget: option OnError: unknown policy 7",
		"handler no-name of Widget: option FormerlyKnownAs: must have at least one id", `"bad name" is not a valid id`,
		`"itself" is already the id of handler "itself"`, `"none" is already the id of handler "none"`,
		`handler "two" of Widget: option FormerlyKnownAs: "shared" is already the id of handler "one"`,
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
