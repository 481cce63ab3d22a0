package credential

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// What a Secret of a credential holds, by the names of Kubernetes' own type for it, and the annotation with its owner's mark.
const (
	UsernameKey     = corev1.BasicAuthUsernameKey
	PasswordKey     = corev1.BasicAuthPasswordKey
	OwnerAnnotation = "einmal.dev/credential-of"
)

// Secrets is a Store of Kubernetes Secrets, one for each credential, of the type kubernetes.io/basic-auth. They are immutable, and have no
// owner reference: the garbage collector must not delete the only copy of a password that is in use. Delete removes them.
//
// It needs the rights to get and create Secrets, and to delete them for Delete: einmal.Access(&corev1.Secret{}, "get", "create", "delete").
type Secrets struct {
	// Client must read Secrets from the API server, not from a cache, as Change.Client does unless the operator handles Secrets.
	Client client.Client
	// Namespace is where the Secrets are.
	Namespace string
}

var _ Store = Secrets{}

// Create makes the Secret.
func (s Secrets) Create(ctx context.Context, name string, owner Owner, record Record) error {
	immutable := true
	made := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.Namespace, Name: name, Annotations: map[string]string{OwnerAnnotation: owner.String()},
		},
		Type: corev1.SecretTypeBasicAuth, Immutable: &immutable,
		Data: map[string][]byte{UsernameKey: []byte(record.Username), PasswordKey: []byte(record.Password.Reveal())},
	}
	err := s.Client.Create(ctx, made, client.FieldOwner(owner.Operator))
	if apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("secret %s/%s: %w", s.Namespace, name, ErrExists)
	}
	if err != nil {
		return fmt.Errorf("create Secret %s/%s: %w", s.Namespace, name, err)
	}
	return nil
}

// Read reads the Secret.
func (s Secrets) Read(ctx context.Context, name string, owner Owner) (Record, error) {
	found, err := s.owned(ctx, name, owner)
	if err != nil {
		return Record{}, err
	}
	record := Record{Username: string(found.Data[UsernameKey]), Password: NewPassword(string(found.Data[PasswordKey]))}
	switch {
	case found.DeletionTimestamp != nil:
		return Record{}, fmt.Errorf("secret %s/%s is being deleted: %w", s.Namespace, name, ErrInvalid)
	case record.Username == "" || record.Password.IsZero():
		return Record{}, fmt.Errorf("secret %s/%s has no %s or no %s: %w; it stays as it is", s.Namespace, name, UsernameKey, PasswordKey, ErrInvalid)
	}
	return record, nil
}

// owned reads a Secret that carries the owner's mark.
func (s Secrets) owned(ctx context.Context, name string, owner Owner) (*corev1.Secret, error) {
	found := &corev1.Secret{}
	err := s.Client.Get(ctx, client.ObjectKey{Namespace: s.Namespace, Name: name}, found)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("secret %s/%s: %w", s.Namespace, name, ErrNotFound)
	}
	if err != nil {
		return nil, fmt.Errorf("read Secret %s/%s: %w", s.Namespace, name, err)
	}
	if mark := found.Annotations[OwnerAnnotation]; mark != owner.String() {
		return nil, fmt.Errorf("secret %s/%s has the annotation %s=%q, not %q: %w; remove it if nobody needs it, or choose another name",
			s.Namespace, name, OwnerAnnotation, mark, owner, ErrConflict)
	}
	return found, nil
}

// Delete deletes the Secret that was read, and no other of its name.
func (s Secrets) Delete(ctx context.Context, name string, owner Owner) error {
	found, err := s.owned(ctx, name, owner)
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	err = s.Client.Delete(ctx, found, client.Preconditions{UID: &found.UID})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete Secret %s/%s: %w", s.Namespace, name, err)
	}
	return nil
}
