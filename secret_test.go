package einmal_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/testkit/cluster"
)

// vault is an operator for Secrets that notes its calls, and what it should not have been told.
type vault struct {
	journal *journal
	// fails lets handlers fail so many times in a row, with the password in what they say.
	fails    int
	mistakes []string
	// namespace is where the Secret is on a real control plane.
	namespace string
}

func (v *vault) declare(op *einmal.Operator) {
	secrets := einmal.For[corev1.Secret](op)
	handle := func(id string) einmal.HandlerFunc[corev1.Secret] {
		return func(_ context.Context, c *einmal.Change[corev1.Secret]) error {
			v.journal.add(c.Object.Name, fmt.Sprintf("%s (%s, attempt %d)", id, c.Reason, c.Attempt))
			if old, has := c.Old(); has || len(c.Diff) > 0 {
				v.mistakes = append(v.mistakes, fmt.Sprintf("%s was told the old state: %v, %v", id, old, c.Diff))
			}
			if c.Attempt <= v.fails {
				return fmt.Errorf("the server says: login of %q failed", c.Object.Data["password"])
			}
			return nil
		}
	}
	secrets.OnCreate("make", handle("make"))
	secrets.OnUpdate("rotate", handle("rotate"), einmal.Fields("data.password"))
	secrets.OnUpdate("own", func(_ context.Context, c *einmal.Change[corev1.Secret]) error {
		v.journal.add(c.Object.Name, "own")
		c.Object.StringData = map[string]string{"seen": "of " + string(c.Object.Data["password"])}
		return nil
	}, einmal.Fields("data.password"), einmal.Fields("data.seen"))
	secrets.OnDelete("unmake", handle("unmake"))
	secrets.OnResume("greet", handle("greet"))
}

const vaulted = "vaulted"

func createSecret(t *testing.T, w *virtualWorld) {
	t.Helper()
	made := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: vaulted, Namespace: "default"}, Data: map[string][]byte{"password": []byte("first-password")},
	}
	if err := w.User.Create(t.Context(), made); err != nil {
		t.Fatal(err)
	}
	w.Pass(time.Minute)
}

func patchSecret(t *testing.T, w *virtualWorld, merge string) {
	t.Helper()
	target := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: vaulted, Namespace: "default"}}
	if err := w.User.Patch(t.Context(), target, client.RawPatch(types.MergePatchType, []byte(merge))); err != nil {
		t.Fatal(err)
	}
	w.Pass(time.Minute)
}

func rotated(password string) string {
	return fmt.Sprintf(`{"data":{"password":%q}}`, base64.StdEncoding.EncodeToString([]byte(password)))
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

// called checks the calls since the last time.
func (v *vault) called(t *testing.T, want ...string) {
	t.Helper()
	if got := v.journal.of(vaulted); !slices.Equal(got, want) {
		t.Errorf("calls: got %q, want %q", got, want)
	}
	v.journal.calls = nil
}

// hidden looks everywhere for what the Secret holds, and for digests of it that anybody could try values with.
func hidden(t *testing.T, w *virtualWorld, v *vault, log *syncedText, passwords ...string) {
	t.Helper()
	v.hiddenIn(t, stored(t, w, vaulted), everywhere(t, w, log), passwords...)
}

// hiddenIn looks for that in a text, and in what the Secret has beside its data.
func (v *vault) hiddenIn(t *testing.T, found *corev1.Secret, text string, passwords ...string) {
	t.Helper()
	body, err := runtime.DefaultUnstructuredConverter.ToUnstructured(found)
	if err != nil {
		t.Fatal(err)
	}
	essence := object.Essence(body, testIdentity, nil)
	values := []any{essence, essence["data"]}
	for _, password := range passwords {
		values = append(values, password, object.Body{"data": object.Body{"password": base64.StdEncoding.EncodeToString([]byte(password))}})
	}
	metadata, err := json.Marshal(found.ObjectMeta)
	if err != nil {
		t.Fatal(err)
	}
	text += string(metadata)
	for _, value := range values {
		for _, form := range recognisable(value) {
			if at := strings.Index(text, form); at >= 0 {
				t.Errorf("found %q of %v: …%s…", form, value, text[max(0, at-200):min(len(text), at+len(form)+20)])
			}
		}
	}
	if found.Annotations[testIdentity+"/record"] == "" {
		t.Error("there is no record")
	}
	if len(v.mistakes) > 0 {
		t.Error(v.mistakes)
	}
}

// recognisable are forms in which a reader who knows a value could find it.
func recognisable(value any) []string {
	encoded, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	forms := []string{object.Digest(value)}
	texts := []string{string(encoded)}
	if text, is := value.(string); is {
		texts = append(texts, text)
	}
	for _, text := range texts {
		sum := sha256.Sum256([]byte(text))
		forms = append(forms, text, base64.StdEncoding.EncodeToString([]byte(text)),
			hex.EncodeToString(sum[:])[:20], base64.RawStdEncoding.EncodeToString(sum[:])[:12])
	}
	return forms
}

// Einmal stores only keyed digests of core Secrets. A whole life: created, failing, restarted, changed, deleted.
func TestTheLifeOfASecret(t *testing.T) {
	v, log := &vault{journal: &journal{}, fails: 1}, testLog(t)
	virtually(t, log, v.declare, func(t *testing.T, w *virtualWorld) {
		createSecret(t, w)
		v.called(t, "make (create, attempt 1)", "make (create, attempt 2)")
		hidden(t, w, v, log, "first-password")
		v.fails = 0
		before := stored(t, w, vaulted).ResourceVersion
		w.restart(func() {})
		w.Pass(time.Hour)
		v.called(t, "greet (resume, attempt 1)")
		if now := stored(t, w, vaulted).ResourceVersion; now != before {
			t.Error("a restart wrote to the Secret")
		}
		patchSecret(t, w, rotated("second-password"))
		v.called(t, "rotate (update, attempt 1)", "own") // Its own write does not call it.
		hidden(t, w, v, log, "first-password", "second-password")
		patchSecret(t, w, `{"metadata":{"labels":{"a":"b"}}}`)
		v.called(t)
		w.restart(func() { patchSecret(t, w, rotated("third-password")) })
		w.Pass(time.Hour)
		v.called(t, "rotate (update, attempt 1)", "own", "greet (resume, attempt 1)")
		hidden(t, w, v, log, "first-password", "second-password", "third-password")
		if err := w.User.Delete(t.Context(), stored(t, w, vaulted)); err != nil {
			t.Fatal(err)
		}
		w.Pass(time.Minute)
		v.called(t, "unmake (delete, attempt 1)")
		err := w.User.Get(t.Context(), types.NamespacedName{Namespace: "default", Name: vaulted}, &corev1.Secret{})
		if !apierrors.IsNotFound(err) {
			t.Errorf("it is still there: %v", err)
		}
	})
}

// The operator's own Secret holds the key. It is not handled, not written again, and not a handler's to see.
func TestTheKeyOfDigestsIsMadeOnceAndNotHandled(t *testing.T) {
	v, log := &vault{journal: &journal{}}, testLog(t)
	virtually(t, log, v.declare, func(t *testing.T, w *virtualWorld) {
		createSecret(t, w)
		key := stored(t, w, testIdentity)
		if len(key.Data["digest-key"]) != 32 || len(key.Annotations) > 0 || len(key.Finalizers) > 0 || key.Immutable == nil || !*key.Immutable {
			t.Errorf("the key is kept as %v", key)
		}
		w.restart(func() {})
		w.Pass(time.Minute)
		if again := stored(t, w, testIdentity); again.ResourceVersion != key.ResourceVersion {
			t.Error("a restart wrote the key again")
		}
		if calls := v.journal.of(testIdentity); len(calls) > 0 {
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
	v, log := &vault{journal: &journal{}}, testLog(t)
	virtually(t, log, v.declare, func(t *testing.T, w *virtualWorld) {
		createSecret(t, w)
		v.called(t, "make (create, attempt 1)")
		w.restart(func() {
			if err := w.User.Delete(t.Context(), stored(t, w, testIdentity)); err != nil {
				t.Fatal(err)
			}
			patchSecret(t, w, rotated("second-password"))
		})
		w.Pass(time.Minute)
		v.called(t, "greet (resume, attempt 1)")
		if log.lines("msg~Secret digests were made with a different key") == 0 {
			t.Error("the log does not tell")
		}
		written := stored(t, w, vaulted).ResourceVersion
		w.restart(func() {})
		w.Pass(time.Hour)
		v.called(t, "greet (resume, attempt 1)")
		if now := stored(t, w, vaulted).ResourceVersion; now != written {
			t.Error("it is recorded again more than once")
		}
		patchSecret(t, w, rotated("third-password"))
		v.called(t, "rotate (update, attempt 1)", "own")
		hidden(t, w, v, log, "first-password", "second-password", "third-password")
	})
}

// A Secret whose record was lost while the operator was down is not created again.
func TestALostRecordOfASecretDoesNotCreate(t *testing.T) {
	v, log := &vault{journal: &journal{}}, testLog(t)
	virtually(t, log, v.declare, func(t *testing.T, w *virtualWorld) {
		createSecret(t, w)
		w.Pass(time.Hour) // The watermark passes it.
		v.called(t, "make (create, attempt 1)")
		w.restart(func() { patchSecret(t, w, `{"metadata":{"annotations":null}}`) })
		w.Pass(time.Minute)
		v.called(t, "greet (resume, attempt 1)")
		hidden(t, w, v, log, "first-password")
		patchSecret(t, w, rotated("second-password"))
		v.called(t, "rotate (update, attempt 1)", "own")
	})
}

// Without the right to its key the operator handles no Secret, says what is missing, and goes on once it has it.
func TestSecretsWaitForTheRightToTheKey(t *testing.T) {
	v, log := &vault{journal: &journal{}}, testLog(t)
	withoutKey := func(answer http.ResponseWriter, r *http.Request, next http.Handler) {
		if !strings.HasSuffix(r.URL.Path, "/secrets/"+testIdentity) {
			next.ServeHTTP(answer, r)
			return
		}
		forbid(t, answer, corev1.Resource("secrets"), testIdentity)
	}
	virtually(t, log, v.declare, func(t *testing.T, w *virtualWorld) {
		var allow func()
		w.restart(func() {
			allow = w.Server.Intercept(withoutKey)
			if err := w.User.DeleteAllOf(t.Context(), &corev1.Secret{}, client.InNamespace("default")); err != nil {
				t.Fatal(err)
			}
		})
		createSecret(t, w)
		v.called(t)
		for _, part := range []string{"no key for the digests", "verbs get and create on secrets", "StateNamespace", "no role grants it"} {
			tells(t, log, "error~"+part)
		}
		allow()
		w.Pass(time.Minute)
		v.called(t, "make (create, attempt 1)")
	})
}

// On a real control plane, under an account of its own: the operator waits for the permission to create the key, and nothing is leaked.
func TestSecretsOnARealControlPlane(t *testing.T) {
	w := sharedWorld(t)
	v := &vault{journal: &journal{}, namespace: w.Namespace(t, "secrets-")}
	w.DeleteAllAtEnd(t, w.Client, &corev1.SecretList{}, client.InNamespace(v.namespace)) // The Secret has a finalizer.
	account := w.Account(t, "vault",
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get", "list", "watch", "patch"}},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "create", "patch"}})
	run := func() (stop func(), log *syncedText) {
		log = testLog(t)
		op := einmal.New(testIdentity, einmal.StateNamespace(v.namespace), einmal.Namespaces(v.namespace),
			einmal.Logger(slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))))
		v.declare(op)
		return w.run(t, op, account), log
	}
	stop, log := run()
	cluster.Until(t, "it says what it may not do", func() bool { return log.lines("error~verbs get and create on secrets") > 0 })
	role := &rbacv1.ClusterRole{}
	if err := w.Get(t.Context(), types.NamespacedName{Name: "vault"}, role); err != nil {
		t.Fatal(err)
	}
	role.Rules[0].Verbs = append(role.Rules[0].Verbs, "create")
	if err := w.Update(t.Context(), role); err != nil {
		t.Fatal(err)
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: vaulted, Namespace: v.namespace}, StringData: map[string]string{"password": "first-password"},
	}
	if err := w.Create(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	calls := []string{"make (create, attempt 1)"}
	created := w.vaulted(t, v, calls...)
	stop()
	v.hiddenIn(t, created, log.String(), "first-password")
	stop, log = run()
	calls = append(calls, "greet (resume, attempt 1)")
	if resumed := w.vaulted(t, v, calls...); resumed.ResourceVersion != created.ResourceVersion {
		t.Error("a restart wrote to the Secret")
	}
	if err := w.Patch(t.Context(), secret, client.RawPatch(types.MergePatchType, []byte(rotated("second-password")))); err != nil {
		t.Fatal(err)
	}
	changed := w.vaulted(t, v, append(calls, "rotate (update, attempt 1)", "own")...)
	stop()
	v.hiddenIn(t, changed, log.String(), "first-password", "second-password")
	if string(changed.Data["seen"]) != "of second-password" {
		t.Errorf("the handler's own data is not there: %d entries", len(changed.Data))
	}
}

// vaulted waits until exactly these calls were made and recorded, and makes sure that there are no others.
func (w *world) vaulted(t *testing.T, v *vault, want ...string) *corev1.Secret {
	t.Helper()
	cluster.Eventually(t, "calls", func(context.Context) error {
		if got := v.journal.of(vaulted); !slices.Equal(got, want) {
			return fmt.Errorf("got %q, want %q", got, want)
		}
		return nil
	})
	found := &corev1.Secret{}
	unchanged(t, "versions of the Secret", func() string {
		if err := w.Get(t.Context(), types.NamespacedName{Namespace: v.namespace, Name: vaulted}, found); err != nil {
			t.Fatal(err)
		}
		return found.ResourceVersion
	})
	if got := v.journal.of(vaulted); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	return found
}
