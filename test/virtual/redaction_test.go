package virtual_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/internal/testkit/apiserver"
	"github.com/einmal-operators/einmal/test/fixture"
)

// everywhere is all that an operator leaves behind: what the API server has of the kinds, its events, and the log.
func everywhere(t *testing.T, w *virtualWorld, log *fixture.Log, lists ...client.ObjectList) string {
	t.Helper()
	text := log.String()
	for _, list := range append(lists, &eventsv1.EventList{}, &corev1.ConfigMapList{}) {
		if err := w.User.List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
		listed, err := json.Marshal(list)
		if err != nil {
			t.Fatal(err)
		}
		text += "\n" + string(listed)
	}
	return text
}

// planted is a secret that must not be found anywhere.
const planted = "Zq7-planted"

// Secrets are redacted in messages. The errors of handlers go to the record and to the log, and the errors of the API server go to the log;
// neither contains a password.
func TestASecretInAnErrorIsNeitherKeptNorLogged(t *testing.T) {
	log := fixture.NewLog(t)
	virtually(t, log, failLoudly, func(t *testing.T, w *virtualWorld) {
		remove := w.Server.Intercept(refuseOnce("webhook called https://hook:" + planted + "@hooks failed"))
		defer remove()
		if err := w.User.Create(t.Context(), &fixture.Widget{ObjectMeta: metav1.ObjectMeta{Name: "x", Namespace: "default"}}); err != nil {
			t.Fatal(err)
		}
		w.Pass(time.Minute)
		text := everywhere(t, w, log, &fixture.WidgetList{})
		if at := strings.Index(text, planted); at >= 0 {
			t.Errorf("found: …%s…", text[max(0, at-200):at+len(planted)+20])
		}
		for _, said := range []string{"postgres://app:***@db", "password=***", "Bearer ***", `https://hook:***@hooks`} {
			if !strings.Contains(log.String(), said) {
				t.Errorf("the log does not say %q", said)
			}
		}
		found := &fixture.Widget{ObjectMeta: metav1.ObjectMeta{Name: "x", Namespace: "default"}}
		if err := w.User.Get(t.Context(), client.ObjectKeyFromObject(found), found); err != nil {
			t.Fatal(err)
		}
		if record := found.Status.Records.Records[fixture.Identity]; !strings.Contains(record, "postgres://app:***@db/app: refused") || !strings.Contains(record, "password=***") {
			t.Errorf("the record does not say what failed: %s", record)
		}
	})
}

// failLoudly declares handlers that fail in every way, with the secret in what they say.
func failLoudly(op *einmal.Operator) {
	widgets := einmal.For[fixture.Widget](op)
	widgets.OnCreate("retries", func(context.Context, *einmal.Change[fixture.Widget]) error {
		return fmt.Errorf("connect: %w", errors.New("dial postgres://app:"+planted+"@db/app: refused"))
	})
	widgets.OnCreate("fails", func(context.Context, *einmal.Change[fixture.Widget]) error {
		return einmal.Permanent(fmt.Errorf("login with password=%s refused", planted))
	})
	widgets.OnCreate("panics", func(context.Context, *einmal.Change[fixture.Widget]) error { panic("Bearer " + planted) })
	widgets.OnCreate("waits", func(context.Context, *einmal.Change[fixture.Widget]) error {
		return einmal.RetryAfter(time.Hour, fmt.Errorf(`answer {"token":%q}`, planted))
	})
}

// refuseOnce answers the first patch with an error.
func refuseOnce(sentence string) apiserver.Interceptor {
	refused := false
	return func(answer http.ResponseWriter, r *http.Request, next http.Handler) {
		if r.Method == http.MethodPatch && !refused {
			refused = true
			http.Error(answer, sentence, http.StatusInternalServerError)
			return
		}
		next.ServeHTTP(answer, r)
	}
}
