package credential_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal/credential"
	"github.com/einmal-operators/einmal/credential/credentialtest"
)

// denying is a client that may not change or create one Secret.
type denying struct {
	client.Client

	secret string
	denial error
}

func (d denying) Update(ctx context.Context, object client.Object, options ...client.UpdateOption) error {
	if object.GetName() == d.secret {
		return d.denial
	}
	return d.Client.Update(ctx, object, options...)
}

func (d denying) Create(ctx context.Context, object client.Object, options ...client.CreateOption) error {
	if object.GetName() == d.secret {
		return d.denial
	}
	return d.Client.Create(ctx, object, options...)
}

// forbidden is what an admission policy says.
func forbidden() error {
	return apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "app-db", errors.New("ValidatingAdmissionPolicy 'frozen' denied request"))
}

// immutable makes the copy for readers immutable, until it is deleted.
func immutable(t *testing.T, user *credential.User) (thaw func()) {
	t.Helper()
	store, copied, frozen := secretsOf(t, *user), &corev1.Secret{}, true
	if err := store.Client.Get(t.Context(), client.ObjectKey{Namespace: store.Namespace, Name: user.Name}, copied); err != nil {
		t.Fatal(err)
	}
	copied.Immutable = &frozen
	if err := store.Client.Update(t.Context(), copied); err != nil {
		t.Fatal(err)
	}
	return func() { lose(t, *user, user.Name) }
}

// cannotRotate rotates in place while the copy for readers is frozen, and after that.
func cannotRotate(t *testing.T, user credential.User, system *credentialtest.Users, freeze func(*testing.T, *credential.User) func()) {
	t.Helper()
	first := converged(t, user).Record
	thaw := freeze(t, &user)
	user.Request, user.InPlace = "leaked", true
	writes := system.Writes()
	for range 2 {
		_, err := user.Converge(t.Context())
		if !errors.Is(err, credential.ErrUnwritable) || !credential.Blocked(err) || !strings.Contains(err.Error(), "default/app-db") {
			t.Errorf("Converge returned %v", err)
		}
	}
	if !system.Accepts(first) || system.Writes() != writes {
		t.Errorf("what readers have is accepted: %t, %d writes", system.Accepts(first), system.Writes()-writes)
	}
	if found, err := user.Store.Read(t.Context(), user.Name, user.Owner, 1); err != nil || len(found.Records) != 1 {
		t.Errorf("a password that readers cannot be given was stored: %d records, %v", len(found.Records), err)
	}
	thaw()
	if second := converged(t, user).Record; second.Generation != 2 || system.Accepts(first) || !system.Accepts(second) {
		t.Errorf("when the copy can be written, generation %d is published", second.Generation)
	}
}

// A rotation changes nothing in the system before it is known that readers can be given the next password. The error names the Secret, and the
// rotation goes on when it can be written.
func TestASystemIsNotChangedWhileReadersCannotBeGivenThePassword(t *testing.T) {
	t.Parallel()
	for name, freeze := range map[string]func(t *testing.T, user *credential.User) (thaw func()){
		"an immutable copy": immutable,
		"an admission policy": func(t *testing.T, user *credential.User) func() {
			t.Helper()
			store := secretsOf(t, *user)
			user.Store = credential.Secrets{Client: denying{store.Client, user.Name, forbidden()}, Namespace: store.Namespace}
			return func() { user.Store = store }
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bothKinds(t, func(t *testing.T, user credential.User, system *credentialtest.Users) {
				cannotRotate(t, user, system, freeze)
			})
		})
	}
}

// Nothing is created for readers that cannot be given it. Only a webhook that does not support dry runs says nothing about the write.
func TestAUserIsNotCreatedForReadersThatCannotBeGivenThePassword(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		denial             error
		unwritable, writes bool
	}{
		"an admission policy":         {denial: forbidden(), unwritable: true},
		"a namespace that is missing": {denial: apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "default"), unwritable: true},
		"a webhook without a dry run": {denial: apierrors.NewBadRequest("admission webhook w does not support dry run"), writes: true},
		"too many requests":           {denial: apierrors.NewTooManyRequestsError("later")},
		"a server that does not work": {denial: apierrors.NewInternalError(errors.New("no"))},
		"an answer that did not come": {denial: context.DeadlineExceeded},
		"a token that has expired":    {denial: apierrors.NewUnauthorized("expired")},
		"a conflict that stays":       {denial: apierrors.NewConflict(schema.GroupResource{Resource: "secrets"}, "app-db", errors.New("changed"))},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bothKinds(t, func(t *testing.T, user credential.User, system *credentialtest.Users) {
				store := secretsOf(t, user)
				user.Store = credential.Secrets{Client: denying{store.Client, user.Name, test.denial}, Namespace: store.Namespace}
				_, err := user.Converge(t.Context())
				if !errors.Is(err, test.denial) || errors.Is(err, credential.ErrUnwritable) != test.unwritable || system.Writes() > 0 != test.writes {
					t.Errorf("%d writes, Converge returned %v", system.Writes(), err)
				}
			})
		})
	}
}
