package virtual_test

import (
	"encoding/base64"
	"encoding/hex"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal/test/fixture"
)

func createSecret(t *testing.T, w *virtualWorld) {
	t.Helper()
	made := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: fixture.SecretName, Namespace: "default"}, Data: map[string][]byte{"password": []byte("first-password")},
	}
	if err := w.User.Create(t.Context(), made); err != nil {
		t.Fatal(err)
	}
	w.Pass(time.Minute)
}

func patchSecret(t *testing.T, w *virtualWorld, merge string) {
	t.Helper()
	target := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: fixture.SecretName, Namespace: "default"}}
	if err := w.User.Patch(t.Context(), target, client.RawPatch(types.MergePatchType, []byte(merge))); err != nil {
		t.Fatal(err)
	}
	w.Pass(time.Minute)
}

// stored is the Secret, or the operator's own one, as the API server has it.
func stored(t *testing.T, w *virtualWorld, name string) *corev1.Secret {
	t.Helper()
	found := &corev1.Secret{}
	if err := w.User.Get(t.Context(), types.NamespacedName{Namespace: "default", Name: name}, found); err != nil {
		t.Fatal(err)
	}
	return found
}

// hidden looks everywhere for what the Secret holds, and for digests of it that anybody could try values with.
func hidden(t *testing.T, w *virtualWorld, v *fixture.Vault, log *fixture.Log, passwords ...string) {
	t.Helper()
	v.HiddenIn(t, stored(t, w, fixture.SecretName), everywhere(t, w, log), passwords...)
}

// Einmal stores only keyed digests of core Secrets. A whole life: created, failing, restarted, changed, deleted.
func TestTheLifeOfASecret(t *testing.T) {
	v, log := &fixture.Vault{Journal: &fixture.Journal{}, Fails: 1}, fixture.NewLog(t)
	virtually(t, log, v.Declare, func(t *testing.T, w *virtualWorld) {
		createSecret(t, w)
		v.Called(t, "make (create, attempt 1)", "make (create, attempt 2)")
		hidden(t, w, v, log, "first-password")
		v.Fails = 0
		before := stored(t, w, fixture.SecretName).ResourceVersion
		w.restart(func() {})
		w.Pass(time.Hour)
		v.Called(t, "greet (resume, attempt 1)")
		if now := stored(t, w, fixture.SecretName).ResourceVersion; now != before {
			t.Error("a restart wrote to the Secret")
		}
		patchSecret(t, w, fixture.RotatedTo("second-password"))
		v.Called(t, "rotate (update, attempt 1)", "own") // Its own write does not call it.
		hidden(t, w, v, log, "first-password", "second-password")
		patchSecret(t, w, `{"metadata":{"labels":{"a":"b"}}}`)
		v.Called(t)
		w.restart(func() { patchSecret(t, w, fixture.RotatedTo("third-password")) })
		w.Pass(time.Hour)
		v.Called(t, "rotate (update, attempt 1)", "own", "greet (resume, attempt 1)")
		hidden(t, w, v, log, "first-password", "second-password", "third-password")
		if err := w.User.Delete(t.Context(), stored(t, w, fixture.SecretName)); err != nil {
			t.Fatal(err)
		}
		w.Pass(time.Minute)
		v.Called(t, "unmake (delete, attempt 1)")
		err := w.User.Get(t.Context(), types.NamespacedName{Namespace: "default", Name: fixture.SecretName}, &corev1.Secret{})
		if !apierrors.IsNotFound(err) {
			t.Errorf("it is still there: %v", err)
		}
	})
}

// The operator's own Secret holds the key. It is not handled, not written again, and not a handler's to see.
func TestTheKeyOfDigestsIsMadeOnceAndNotHandled(t *testing.T) {
	v, log := &fixture.Vault{Journal: &fixture.Journal{}}, fixture.NewLog(t)
	virtually(t, log, v.Declare, func(t *testing.T, w *virtualWorld) {
		createSecret(t, w)
		key := stored(t, w, fixture.Identity)
		if len(key.Data["digest-key"]) != 32 || len(key.Annotations) > 0 || len(key.Finalizers) > 0 || key.Immutable == nil || !*key.Immutable {
			t.Errorf("the key is kept as %v", key)
		}
		w.restart(func() {})
		w.Pass(time.Minute)
		if again := stored(t, w, fixture.Identity); again.ResourceVersion != key.ResourceVersion {
			t.Error("a restart wrote the key again")
		}
		if calls := v.Journal.Of(fixture.Identity); len(calls) > 0 {
			t.Errorf("handlers were called for it: %q", calls)
		}
		text := everywhere(t, w, log)
		if strings.Contains(text, base64.StdEncoding.EncodeToString(key.Data["digest-key"])) || strings.Contains(text, hex.EncodeToString(key.Data["digest-key"])) {
			t.Error("the key is logged")
		}
	})
}

// With the key gone, or another, nothing can be compared. That runs no handlers, neither those that create nor those
// that update; later changes are seen again.
func TestWithoutTheOldKeyNothingRuns(t *testing.T) {
	v, log := &fixture.Vault{Journal: &fixture.Journal{}}, fixture.NewLog(t)
	virtually(t, log, v.Declare, func(t *testing.T, w *virtualWorld) {
		createSecret(t, w)
		v.Called(t, "make (create, attempt 1)")
		w.restart(func() {
			if err := w.User.Delete(t.Context(), stored(t, w, fixture.Identity)); err != nil {
				t.Fatal(err)
			}
			patchSecret(t, w, fixture.RotatedTo("second-password"))
		})
		w.Pass(time.Minute)
		v.Called(t, "greet (resume, attempt 1)")
		if log.Count("msg~Secret digests were made with a different key") == 0 {
			t.Error("the log does not tell")
		}
		written := stored(t, w, fixture.SecretName).ResourceVersion
		w.restart(func() {})
		w.Pass(time.Hour)
		v.Called(t, "greet (resume, attempt 1)")
		if now := stored(t, w, fixture.SecretName).ResourceVersion; now != written {
			t.Error("it is recorded again more than once")
		}
		patchSecret(t, w, fixture.RotatedTo("third-password"))
		v.Called(t, "rotate (update, attempt 1)", "own")
		hidden(t, w, v, log, "first-password", "second-password", "third-password")
	})
}

// A Secret whose record was lost while the operator was down is not created again.
func TestALostRecordOfASecretDoesNotCreate(t *testing.T) {
	v, log := &fixture.Vault{Journal: &fixture.Journal{}}, fixture.NewLog(t)
	virtually(t, log, v.Declare, func(t *testing.T, w *virtualWorld) {
		createSecret(t, w)
		w.Pass(time.Hour) // The watermark passes it.
		v.Called(t, "make (create, attempt 1)")
		w.restart(func() { patchSecret(t, w, `{"metadata":{"annotations":null}}`) })
		w.Pass(time.Minute)
		v.Called(t, "greet (resume, attempt 1)")
		hidden(t, w, v, log, "first-password")
		patchSecret(t, w, fixture.RotatedTo("second-password"))
		v.Called(t, "rotate (update, attempt 1)", "own")
	})
}

// Without the right to its key the operator handles no Secret, says what is missing, and goes on once it has it.
func TestSecretsWaitForTheRightToTheKey(t *testing.T) {
	v, log := &fixture.Vault{Journal: &fixture.Journal{}}, fixture.NewLog(t)
	withoutKey := func(answer http.ResponseWriter, r *http.Request, next http.Handler) {
		if !strings.HasSuffix(r.URL.Path, "/secrets/"+fixture.Identity) {
			next.ServeHTTP(answer, r)
			return
		}
		forbid(t, answer, corev1.Resource("secrets"), fixture.Identity)
	}
	virtually(t, log, v.Declare, func(t *testing.T, w *virtualWorld) {
		var allow func()
		w.restart(func() {
			allow = w.Server.Intercept(withoutKey)
			if err := w.User.DeleteAllOf(t.Context(), &corev1.Secret{}, client.InNamespace("default")); err != nil {
				t.Fatal(err)
			}
		})
		createSecret(t, w)
		v.Called(t)
		for _, part := range []string{"no key for the digests", "verbs get and create on secrets", "StateNamespace", "no role grants it"} {
			fixture.ExpectLine(t, log, "error~"+part)
		}
		allow()
		w.Pass(time.Minute)
		v.Called(t, "make (create, attempt 1)")
	})
}
