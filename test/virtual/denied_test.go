package virtual_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/test/fixture"
)

// denial is how admission denies a request.
type denial struct {
	name, reason, message string
	code                  int
}

// denials have the texts of the API server: see test/cluster for where they come from.
func denials() []denial {
	const policy = `widgets.test.einmal.dev "one" is forbidden: ValidatingAdmissionPolicy 'freeze' with binding 'all' denied request: frozen`
	return []denial{
		{"a policy", "Invalid", policy, http.StatusUnprocessableEntity},
		{"a policy with the reason Unauthorized", "Unauthorized", policy, http.StatusUnauthorized},
		{"a policy with the reason Forbidden", "Forbidden", policy, http.StatusForbidden},
		{"a policy with the reason RequestEntityTooLarge", "RequestEntityTooLarge", policy, http.StatusRequestEntityTooLarge},
		{"a webhook", "Forbidden", `admission webhook "freeze.example.com" denied the request: frozen`, http.StatusForbidden},
		{"a webhook with the code 409", "Conflict", `admission webhook "freeze.example.com" denied the request: frozen`, http.StatusConflict},
		{"a webhook with the code 404", "NotFound", `admission webhook "freeze.example.com" denied the request without explanation`, http.StatusNotFound},
		{"another plugin", "Forbidden", `widgets.test.einmal.dev "one" is forbidden: frozen`, http.StatusForbidden},
	}
}

// deny denies all patches with a record of the operator, until the function that it returns is called.
func (w *virtualWorld) deny(d denial) (allow func()) {
	return w.Server.Intercept(func(answer http.ResponseWriter, r *http.Request, next http.Handler) {
		body, err := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		if err != nil || r.Method != http.MethodPatch || !strings.Contains(string(body), `\"uid\"`) {
			next.ServeHTTP(answer, r)
			return
		}
		d.send(answer)
	})
}

func (d denial) send(answer http.ResponseWriter) {
	answer.Header().Set("Content-Type", "application/json")
	answer.WriteHeader(d.code)
	_, _ = fmt.Fprintf(answer, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"code":%d,"message":%q}`, d.reason, d.code, d.message)
}

// recordsWork declares handlers that change nothing in the object.
func recordsWork[T any](kind *einmal.Kind[T], said *fixture.Notes) {
	kind.OnCreate("make", func(ctx context.Context, c *einmal.Change[T]) error {
		err := einmal.Step(ctx, c, "rent", func(context.Context) error {
			said.Add("rent")
			return nil
		})
		said.Add("make, attempt %d", c.Attempt)
		if err == nil && c.Attempt == 1 {
			err = einmal.RetryAfter(time.Second, fmt.Errorf("not ready"))
		}
		return err
	})
	kind.OnUpdate("resize", func(_ context.Context, c *einmal.Change[T]) error {
		said.Add("resize, %d change", len(c.Diff))
		return nil
	}, einmal.Fields("spec.size"))
	kind.OnDelete("unmake", func(context.Context, *einmal.Change[T]) error {
		said.Add("unmake")
		return nil
	})
}

func declareRecordsWork(use fixture.Carrier, said *fixture.Notes) func(*einmal.Operator) {
	return func(op *einmal.Operator) {
		if use.Name == "status" {
			recordsWork(einmal.For[fixture.Widget](op), said)
		} else {
			recordsWork(einmal.For[unstructured.Unstructured](op, einmal.GVK(fixture.Group, "v1", use.Kind)), said)
		}
	}
}

// While admission denies the record, a corrected object and its deletion are handled all the same. What was done is kept in memory, is not done
// again, and is written when that is allowed.
func TestADeniedRecordHoldsNothingBack(t *testing.T) {
	for _, use := range fixture.Carriers() {
		for _, d := range denials() {
			t.Run(use.Name+"/"+d.name, func(t *testing.T) { recordIsDenied(t, use, d) })
		}
	}
}

func recordIsDenied(t *testing.T, use fixture.Carrier, d denial) {
	t.Helper()
	said, log := &fixture.Notes{}, fixture.NewLog(t)
	virtually(t, log, declareRecordsWork(use, said), func(t *testing.T, w *virtualWorld) {
		allow := w.deny(d)
		one, two := use.Object("one"), use.Object("two")
		fixture.Must(t, w.User.Create(t.Context(), one))
		w.Pass(time.Minute)
		said.Expect(t, "rent", "make, attempt 1", "make, attempt 2")
		w.merge(t, one, `{"spec":{"size":2}}`)
		w.Pass(time.Second)
		said.Expect(t, "resize, 1 change")
		w.Pass(time.Hour)
		said.Expect(t)
		fixture.Must(t, w.User.Get(t.Context(), client.ObjectKeyFromObject(one), one))
		if text := use.Record(one); text != "" {
			t.Errorf("a record was written: %s", text)
		}
		if n := log.Count("msg=admission denied the record, kept in memory", "reason="+d.message); n != 1 {
			t.Errorf("the log says %d times what was denied, want once", n)
		}
		for _, misleading := range []string{"removed or overwritten", "does not fit", "rejects the credentials", "lacks permissions"} {
			if strings.Contains(log.String(), misleading) {
				t.Errorf("the log says %q", misleading)
			}
		}
		expectDenialEvent(t, w, d)
		fixture.Must(t, w.User.Create(t.Context(), two))
		w.Pass(time.Minute)
		said.Expect(t, "rent", "make, attempt 1", "make, attempt 2")
		fixture.Must(t, w.User.Delete(t.Context(), two))
		w.Pass(time.Second)
		said.Expect(t, "unmake")
		if err := w.User.Get(t.Context(), client.ObjectKeyFromObject(two), two); client.IgnoreNotFound(err) != nil || err == nil {
			t.Errorf("%v: the object that was deleted is still there", err)
		}
		allow()
		w.Pass(time.Hour)
		fixture.Must(t, w.User.Get(t.Context(), client.ObjectKeyFromObject(one), one))
		if text := use.Record(one); !strings.Contains(text, `"size":2`) {
			t.Errorf("the record is %q", text)
		}
		w.restart(func() {})
		w.Pass(time.Hour)
		said.Expect(t)
	})
}

// expectDenialEvent expects one event about the object, which has the text of the API server.
func expectDenialEvent(t *testing.T, w *virtualWorld, d denial) {
	t.Helper()
	var events corev1.EventList
	fixture.Must(t, w.User.List(t.Context(), &events))
	found := 0
	for _, event := range events.Items {
		if event.Reason == "WriteDenied" && event.InvolvedObject.Name == "one" {
			found += int(event.Count)
			if !strings.Contains(event.Message, d.message) {
				t.Errorf("the event says %q", event.Message)
			}
		}
	}
	if found != 1 {
		t.Errorf("%d events about the denial, want one", found)
	}
}

// buying declares an effect that only a person can look up, and says when it is made.
func buying(op *einmal.Operator, use fixture.Carrier, said *fixture.Notes, made func()) {
	kind := einmal.For[unstructured.Unstructured](op, einmal.GVK(fixture.Group, "v1", use.Kind))
	kind.OnCreate("buy", func(ctx context.Context, c *einmal.Change[unstructured.Unstructured]) error {
		_, err := einmal.Effect(ctx, c, "sale", einmal.RecoverByHand(func(context.Context) (fixture.Account, error) {
			said.Add("buy")
			made()
			return fixture.Account{}, nil
		}))
		return err
	})
	kind.OnUpdate("resize", func(context.Context, *einmal.Change[unstructured.Unstructured]) error {
		said.Add("resize")
		return nil
	}, einmal.Fields("spec.size"))
}

// If admission denies the result of an effect, it is kept in memory, and the effect is not made again.
func TestAnEffectWhoseResultIsDeniedIsMadeOnce(t *testing.T) {
	for _, use := range fixture.Carriers() {
		t.Run(use.Name, func(t *testing.T) {
			said := &fixture.Notes{}
			made := func() {}
			virtually(t, fixture.NewLog(t), func(op *einmal.Operator) { buying(op, use, said, func() { made() }) }, func(t *testing.T, w *virtualWorld) {
				var allow func()
				made = func() { allow = w.deny(denials()[0]) }
				w.buy(t, use.Object("one"))
				said.Expect(t, "buy", "resize")
				allow()
				made = func() {}
				w.Pass(time.Hour)
				w.restart(func() {})
				w.Pass(time.Hour)
				said.Expect(t)
			})
		})
	}
}

// If admission denies the intent of an effect, the effect is made when the intent is allowed. An update is handled after the creation.
func TestAnEffectWhoseIntentIsDeniedIsMadeLater(t *testing.T) {
	for _, use := range fixture.Carriers() {
		t.Run(use.Name, func(t *testing.T) {
			said := &fixture.Notes{}
			virtually(t, fixture.NewLog(t), func(op *einmal.Operator) { buying(op, use, said, func() {}) }, func(t *testing.T, w *virtualWorld) {
				allow := w.deny(denials()[0])
				w.buy(t, use.Object("one"))
				said.Expect(t)
				allow()
				w.Pass(time.Hour)
				w.restart(func() {})
				w.Pass(time.Hour)
				said.Expect(t, "buy", "resize")
			})
		})
	}
}

// buy creates an object for which an effect is made, and changes it.
func (w *virtualWorld) buy(t *testing.T, one *unstructured.Unstructured) {
	t.Helper()
	w.Pass(time.Minute) // The effect of an object that was there before the operator could have been made before.
	fixture.Must(t, w.User.Create(t.Context(), one))
	w.Pass(time.Minute)
	w.merge(t, one, `{"spec":{"size":2}}`)
	w.Pass(time.Hour)
}

// A denied finalizer is reported with the text of the API server. When the object is corrected, its handlers run.
func TestADeniedFinalizerIsReported(t *testing.T) {
	said, log := &fixture.Notes{}, fixture.NewLog(t)
	use := fixture.StatusCarrier()
	virtually(t, log, declareRecordsWork(use, said), func(t *testing.T, w *virtualWorld) {
		w.Server.Intercept(func(answer http.ResponseWriter, r *http.Request, next http.Handler) {
			one := &unstructured.Unstructured{}
			one.SetGroupVersionKind(schema.GroupVersionKind{Group: fixture.Group, Version: "v1", Kind: use.Kind})
			if r.Method == http.MethodPatch && strings.HasSuffix(r.URL.Path, "/one") && r.Header.Get("Content-Type") == "application/json-patch+json" {
				if err := w.User.Get(r.Context(), client.ObjectKey{Namespace: "default", Name: "one"}, one); err == nil && one.GetLabels()["team"] == "" {
					denials()[0].send(answer)
					return
				}
			}
			next.ServeHTTP(answer, r)
		})
		one := use.Object("one")
		fixture.Must(t, w.User.Create(t.Context(), one))
		w.Pass(time.Hour)
		said.Expect(t)
		if n := log.Count("msg=admission denied the finalizer"); n != 1 {
			t.Errorf("the log says %d times that the finalizer was denied, want once", n)
		}
		w.merge(t, one, `{"metadata":{"labels":{"team":"a"}}}`)
		w.Pass(time.Minute)
		said.Expect(t, "rent", "make, attempt 1", "make, attempt 2")
	})
}
