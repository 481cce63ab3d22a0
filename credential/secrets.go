package credential

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// What a Secret of a credential holds: the user and the password by the names of Kubernetes' own type for it, and the rest of the Record.
const (
	UsernameKey   = corev1.BasicAuthUsernameKey
	PasswordKey   = corev1.BasicAuthPasswordKey
	GenerationKey = "generation"
	RequestKey    = "request"
	CreatedKey    = "created"
	// PublishedKey is in the Secret for readers alone: since when they get it.
	PublishedKey = "published"
)

// OwnerAnnotation is the annotation of a Secret with its owner's mark.
const OwnerAnnotation = "einmal.dev/credential-of"

// Secrets is a Store of Kubernetes Secrets of the type kubernetes.io/basic-auth. A generation n of a name lies in the Secret name.gN, which is
// immutable; the Secret of the name itself is the copy for readers, which a rotation overwrites. None has an owner reference: the garbage
// collector must not delete the only copy of a password that is in use. Delete removes them.
//
// It needs the rights to get, create and update Secrets, and to delete them for Delete:
// einmal.Access(&corev1.Secret{}, "get", "create", "update", "delete").
type Secrets struct {
	// Client must read Secrets from the API server, not from a cache, as Change.Client does unless the operator handles Secrets.
	Client client.Client
	// Namespace is where the Secrets are.
	Namespace string
}

var _ Store = Secrets{}

// Create makes the Secret of a generation.
func (s Secrets) Create(ctx context.Context, name string, owner Owner, record Record) error {
	made := s.secret(generationName(name, record.Generation), owner, record)
	immutable := true
	made.Immutable = &immutable
	err := s.Client.Create(ctx, made, client.FieldOwner(owner.Operator))
	if apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("secret %s/%s: %w", s.Namespace, made.Name, ErrExists)
	}
	if err != nil {
		return fmt.Errorf("create Secret %s/%s: %w", s.Namespace, made.Name, err)
	}
	return nil
}

func generationName(name string, generation int) string {
	return name + ".g" + strconv.Itoa(generation)
}

// secret is a record as a Secret.
func (s Secrets) secret(name string, owner Owner, record Record) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.Namespace, Name: name, Annotations: map[string]string{OwnerAnnotation: owner.String()},
		},
		Type: corev1.SecretTypeBasicAuth,
		Data: map[string][]byte{
			UsernameKey: []byte(record.Username), PasswordKey: []byte(record.Password.Reveal()),
			GenerationKey: []byte(strconv.Itoa(record.Generation)), RequestKey: []byte(record.Request),
			CreatedKey: []byte(record.Created.UTC().Format(time.RFC3339)),
		},
	}
}

// Read reads the Secret for readers, and those of the generations from the one before it on.
func (s Secrets) Read(ctx context.Context, name string, owner Owner, from int) (Found, error) {
	published, since, err := s.published(ctx, name, owner)
	if err != nil {
		return Found{}, err
	}
	var found Found
	for generation := max(from, published.Generation-1); ; generation++ {
		secret, err := s.owned(ctx, generationName(name, generation), owner)
		if err != nil {
			return Found{}, err
		}
		if secret == nil && generation >= published.Generation {
			return found, nil
		}
		if secret == nil {
			continue // Somebody has removed one that is not in use any more.
		}
		record, err := recordOf(secret)
		if err != nil || record.Generation != generation {
			return Found{}, fmt.Errorf("secret %s/%s does not have generation %d with %s, %s and %s: %w; it stays as it is",
				s.Namespace, secret.Name, generation, UsernameKey, PasswordKey, CreatedKey, ErrInvalid)
		}
		found.Records = append(found.Records, record)
		if record == published {
			found.Published, found.Since = generation, since
		}
	}
}

// published is the record that readers get, and since when; the zero Record if they get none. It is a copy: what is wrong with it is put
// right by Publish.
func (s Secrets) published(ctx context.Context, name string, owner Owner) (Record, time.Time, error) {
	secret, err := s.owned(ctx, name, owner)
	if err != nil || secret == nil {
		return Record{}, time.Time{}, err
	}
	since, untimed := time.Parse(time.RFC3339, string(secret.Data[PublishedKey]))
	if record, malformed := recordOf(secret); malformed == nil && untimed == nil {
		return record, since, nil
	}
	return Record{}, time.Time{}, nil
}

// owned reads a Secret that carries the owner's mark; nil if there is none of that name.
func (s Secrets) owned(ctx context.Context, name string, owner Owner) (*corev1.Secret, error) {
	found := &corev1.Secret{}
	err := s.Client.Get(ctx, client.ObjectKey{Namespace: s.Namespace, Name: name}, found)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // Nothing is what there is.
	}
	if err != nil {
		return nil, fmt.Errorf("read Secret %s/%s: %w", s.Namespace, name, err)
	}
	if mark := found.Annotations[OwnerAnnotation]; mark != owner.String() {
		return nil, fmt.Errorf("secret %s/%s has the annotation %s=%q, not %q: %w; remove it if nobody needs it, or choose another name",
			s.Namespace, name, OwnerAnnotation, mark, owner, ErrConflict)
	}
	if found.DeletionTimestamp != nil {
		return nil, fmt.Errorf("secret %s/%s is being deleted: %w", s.Namespace, name, ErrInvalid)
	}
	return found, nil
}

// recordOf is the record in a Secret.
func recordOf(secret *corev1.Secret) (Record, error) {
	record := Record{
		Username: string(secret.Data[UsernameKey]), Password: NewPassword(string(secret.Data[PasswordKey])),
		Request: string(secret.Data[RequestKey]),
	}
	var err error
	if record.Generation, err = strconv.Atoi(string(secret.Data[GenerationKey])); err != nil {
		return Record{}, fmt.Errorf("its %s is no number: %w", GenerationKey, ErrInvalid)
	}
	if record.Created, err = time.Parse(time.RFC3339, string(secret.Data[CreatedKey])); err != nil {
		return Record{}, fmt.Errorf("its %s is no time: %w", CreatedKey, ErrInvalid)
	}
	if record.Username == "" || record.Password.IsZero() {
		return Record{}, fmt.Errorf("it has no %s or no %s: %w", UsernameKey, PasswordKey, ErrInvalid)
	}
	return record, nil
}

// Publish writes the Secret for readers.
func (s Secrets) Publish(ctx context.Context, name string, owner Owner, record Record) error {
	wanted := s.secret(name, owner, record)
	wanted.Data[PublishedKey] = []byte(time.Now().UTC().Format(time.RFC3339))
	there, err := s.owned(ctx, name, owner)
	switch {
	case err != nil:
		return err
	case there == nil:
		err = s.Client.Create(ctx, wanted, client.FieldOwner(owner.Operator))
	default:
		there.Data = wanted.Data
		err = s.Client.Update(ctx, there, client.FieldOwner(owner.Operator))
	}
	if (apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err)) && s.publishes(ctx, name, owner, wanted) {
		return nil // Somebody was faster, with the same.
	}
	if err != nil {
		return fmt.Errorf("write Secret %s/%s: %w", s.Namespace, name, err)
	}
	return nil
}

// publishes tells whether readers get a record now.
func (s Secrets) publishes(ctx context.Context, name string, owner Owner, wanted *corev1.Secret) bool {
	now, _, err := s.published(ctx, name, owner)
	record, malformed := recordOf(wanted)
	return err == nil && malformed == nil && now == record
}

// Delete looks at all Secrets of the name first, and deletes none if one is another's.
func (s Secrets) Delete(ctx context.Context, name string, owner Owner) error {
	last, err := s.lastPublished(ctx, name, owner)
	if err != nil {
		return err
	}
	names := []string{name}
	for generation := 1; ; generation++ {
		secret, err := s.owned(ctx, generationName(name, generation), owner)
		if err != nil {
			return err
		}
		if secret == nil && generation >= last {
			break
		}
		if secret != nil { // Else somebody has removed one that is not in use any more.
			names = slices.Insert(names, 1, secret.Name)
		}
	}
	for _, one := range names {
		if err := s.remove(ctx, one, owner); err != nil {
			return err
		}
	}
	return nil
}

// lastPublished is the generation that readers get, if it is there; else 0.
func (s Secrets) lastPublished(ctx context.Context, name string, owner Owner) (int, error) {
	published, _, err := s.published(ctx, name, owner)
	if err != nil || published.Generation == 0 {
		return 0, err
	}
	secret, err := s.owned(ctx, generationName(name, published.Generation), owner)
	if err != nil || secret == nil {
		return 0, err
	}
	return published.Generation, nil
}

// remove deletes a Secret of the owner, if it is there.
func (s Secrets) remove(ctx context.Context, name string, owner Owner) error {
	found, err := s.owned(ctx, name, owner)
	if err != nil || found == nil {
		return err
	}
	err = s.Client.Delete(ctx, found, client.Preconditions{UID: &found.UID})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete Secret %s/%s: %w", s.Namespace, name, err)
	}
	return nil
}
