package virtual_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/test/fixture"
)

// Each log line about an object names its kind and generation. Each line about an attempt also names the handler, the attempt and its reason.
func TestLinesOfTheLogSayWhatTheyAreAbout(t *testing.T) {
	log := fixture.NewLog(t)
	virtually(t, log, talkative, func(t *testing.T, w *virtualWorld) {
		made := oneWidget("x")
		if err := w.User.Create(t.Context(), made); err != nil {
			t.Fatal(err)
		}
		w.Pass(10 * time.Minute)
		w.restart(func() {})
		w.Pass(time.Minute)
		if err := w.User.Delete(t.Context(), made); err != nil {
			t.Fatal(err)
		}
		w.Pass(time.Minute)
	})
	said := map[string]bool{}
	for line := range strings.Lines(log.String()) {
		message := messageOf(line)
		said[message] = true
		for _, part := range mustSay(line, message) {
			if strings.Count(line, part) != 1 {
				t.Errorf("%sdoes not say %s once", line, part)
			}
		}
	}
	for _, message := range []string{
		`msg="handler failed, will retry"`, `msg="handler failed permanently, will run again when its fields change"`,
		`msg="handler waits"`, `msg="handler succeeded"`, `msg=hello`, `msg="the object is gone"`, `msg="event handler failed, will not retry"`,
	} {
		if !said[message] {
			t.Errorf("the log has no %s", message)
		}
	}
}

func messageOf(line string) string { return regexp.MustCompile(`msg=("[^"]*"|\S+)`).FindString(line) }

// mustSay returns the texts that a line must contain once.
func mustSay(line, message string) []string {
	var parts []string
	if strings.Contains(line, " object=") {
		parts = append(parts, " kind=Widget")
	}
	if strings.Contains(line, " object=") && !strings.Contains(message, "the object is gone") {
		parts = append(parts, " generation=")
	}
	if regexp.MustCompile(`handler (invoked|failed|succeeded|waits)|msg=hello`).MatchString(message) {
		parts = append(parts, " object=default/x", " handler=", " reason=", " attempt=")
	}
	if strings.Contains(message, "handler failed") {
		parts = append(parts, " error=")
	}
	return parts
}

// talkative has handlers that end in all possible ways.
func talkative(op *einmal.Operator) {
	widgets := einmal.For[fixture.Widget](op)
	widgets.OnEvent("watch", func(_ context.Context, c *einmal.Change[fixture.Widget]) error {
		c.Log.Info("hello")
		return errors.New("no")
	})
	widgets.OnCreate("retry", func(_ context.Context, c *einmal.Change[fixture.Widget]) error {
		c.Log.Info("hello")
		if c.Attempt < 3 {
			return errors.New("not yet")
		}
		return nil
	})
	widgets.OnCreate("fail", func(context.Context, *einmal.Change[fixture.Widget]) error { return einmal.Permanent(errors.New("no")) })
	widgets.OnCreate("wait", func(context.Context, *einmal.Change[fixture.Widget]) error { return einmal.RequeueAfter(time.Hour) })
	widgets.Reconcile("level", func(context.Context, *einmal.Change[fixture.Widget]) error { return nil })
	widgets.OnDelete("undo", func(context.Context, *einmal.Change[fixture.Widget]) error { return nil })
}

// Secrets are redacted in what handlers log, and the contents of a handled Secret are found in any form.
func TestWhatHandlersLogHasNoSecrets(t *testing.T) {
	log := fixture.NewLog(t)
	virtually(t, log, func(op *einmal.Operator) {
		einmal.For[corev1.Secret](op).OnCreate("tell", func(_ context.Context, c *einmal.Change[corev1.Secret]) error {
			value := string(c.Object.Data["entry"])
			c.Log.Info("it is "+value, //nolint:sloglint // What a message says is redacted too.
				"in base64", base64.StdEncoding.EncodeToString([]byte(value)), "object of the handler", c.Object)
			c.Log.With("error", fmt.Errorf("refused %q", value)).Error("failed", "count", 3)
			c.Event(einmal.EventNormal, value, "it is "+value)
			return nil
		})
	}, func(t *testing.T, w *virtualWorld) {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "x", Namespace: "default"}, Data: map[string][]byte{"entry": []byte("plain-" + planted)}}
		if err := w.User.Create(t.Context(), secret); err != nil {
			t.Fatal(err)
		}
		w.Pass(time.Minute)
		text := everywhere(t, w, log)
		for _, form := range []string{planted, base64.StdEncoding.EncodeToString([]byte("plain-" + planted))[:8]} {
			if at := strings.Index(text, form); at >= 0 {
				t.Errorf("found: …%s…", text[max(0, at-200):at+len(form)+20])
			}
		}
		for _, said := range []string{`msg="it is ***"`, `"in base64"="***=`, `"object of the handler"="Secret default/x"`, `refused \"***\"`, "count=3", `"note":"it is ***"`} {
			if !strings.Contains(text, said) {
				t.Errorf("nothing says %s", said)
			}
		}
	})
}
