package credential

import (
	"cmp"
	"context"
	"errors"
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
	// OverlapKey is in Secrets whose Record has an Overlap. For NoOverlap it is "0s".
	OverlapKey = "overlap"
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
	made := &corev1.Secret{
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
	if record.Overlap != 0 {
		made.Data[OverlapKey] = []byte(max(record.Overlap, 0).String())
	}
	return made
}

// Read reads the Secret for readers, and those of the generations from the one before it on.
func (s Secrets) Read(ctx context.Context, name string, owner Owner, from int) (Found, error) {
	published, err := s.published(ctx, name, owner)
	if err != nil {
		return Found{}, err
	}
	found := Found{Copy: published.Generation}
	for generation := max(from, published.Generation-1); ; generation++ {
		secret, err := s.owned(ctx, generationName(name, generation), owner)
		if err != nil {
			return Found{}, err
		}
		if secret == nil && generation > published.Generation {
			return found, nil
		}
		if secret == nil {
			continue // It was removed. There can be later ones.
		}
		record, err := recordOf(secret)
		if err != nil || record.Generation != generation {
			return Found{}, s.malformed(secret.Name, generation)
		}
		found.Records = append(found.Records, record)
		if record == published.Record && !published.since.IsZero() {
			found.Published, found.Since = generation, published.since
		}
	}
}

// Generation reads one generation of a name, with one request. It is ErrInvalid if it is not there.
func (s Secrets) Generation(ctx context.Context, name string, owner Owner, generation int) (Record, error) {
	secret, err := s.owned(ctx, generationName(name, generation), owner)
	if err != nil {
		return Record{}, err
	}
	if secret == nil {
		return Record{}, fmt.Errorf("secret %s/%s is not there: %w", s.Namespace, generationName(name, generation), ErrInvalid)
	}
	record, err := recordOf(secret)
	if err != nil || record.Generation != generation {
		return Record{}, s.malformed(secret.Name, generation)
	}
	return record, nil
}

// malformed is the error of a Secret that does not have its generation.
func (s Secrets) malformed(name string, generation int) error {
	return fmt.Errorf("secret %s/%s does not have generation %d with %s, %s and %s: %w; it stays as it is",
		s.Namespace, name, generation, UsernameKey, PasswordKey, CreatedKey, ErrInvalid)
}

// published is the copy for readers.
type published struct {
	Record

	// since is when readers began to get it; zero if the copy does not say it.
	since time.Time
}

// publishedIn returns the record of a copy; the zero Record if there is none. It is a copy: what is wrong with it is put right by Publish.
func publishedIn(secret *corev1.Secret) published {
	if secret == nil {
		return published{}
	}
	record, err := recordOf(secret)
	if err != nil || record.Generation < 1 || record.Generation > maxGeneration {
		return published{}
	}
	since, err := time.Parse(time.RFC3339, string(secret.Data[PublishedKey]))
	if err != nil {
		return published{Record: record}
	}
	return published{record, since}
}

// maxGeneration is more than there ever are: a copy that names a later one was not written by us.
const maxGeneration = 1<<31 - 2

// published reads the copy for readers.
func (s Secrets) published(ctx context.Context, name string, owner Owner) (published, error) {
	secret, err := s.owned(ctx, name, owner)
	return publishedIn(secret), err
}

// owned reads a Secret that carries the owner's mark; nil if there is none of that name.
func (s Secrets) owned(ctx context.Context, name string, owner Owner) (*corev1.Secret, error) {
	found := &corev1.Secret{}
	err := s.Client.Get(ctx, client.ObjectKey{Namespace: s.Namespace, Name: name}, found)
	if isAbsent(err, name) {
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

// isAbsent reports whether the API server says that an object of this name does not exist. A 404 that names no object, as of a server that
// does not know the path, says nothing about the object.
func isAbsent(err error, name string) bool {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	return ok && apierrors.IsNotFound(err) && status.ErrStatus.Details != nil && status.ErrStatus.Details.Name == name
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
	if text, ok := secret.Data[OverlapKey]; ok {
		if record.Overlap, err = time.ParseDuration(string(text)); err != nil || record.Overlap < 0 {
			return Record{}, fmt.Errorf("its %s is not a duration: %w", OverlapKey, ErrInvalid)
		}
		record.Overlap = cmp.Or(record.Overlap, NoOverlap)
	}
	if record.Username == "" || record.Password.IsZero() {
		return Record{}, fmt.Errorf("it has no %s or no %s: %w", UsernameKey, PasswordKey, ErrInvalid)
	}
	return record, nil
}

// publishAttempts is how often Publish tries when other writers change the copy at the same time.
const publishAttempts = 10

// Publish writes the Secret for readers. It writes only over what it has looked at: if the Secret changes in between, it looks again.
func (s Secrets) Publish(ctx context.Context, name string, owner Owner, record Record) error {
	for attempt := 1; ; attempt++ {
		err := s.publish(ctx, name, owner, record)
		changed := apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err)
		if err == nil || !changed || attempt == publishAttempts {
			return err
		}
	}
}

func (s Secrets) publish(ctx context.Context, name string, owner Owner, record Record) error {
	wanted := s.secret(name, owner, record)
	there, err := s.owned(ctx, name, owner)
	if err != nil {
		return err
	}
	// As the Secret would say it: a Secret has no fractions of seconds.
	same, err := recordOf(wanted)
	if err != nil {
		return fmt.Errorf("write Secret %s/%s: %w", s.Namespace, name, err)
	}
	switch now := publishedIn(there); {
	case now.Generation > record.Generation:
		return fmt.Errorf("secret %s/%s has generation %d, not %d: %w", s.Namespace, name, now.Generation, record.Generation, ErrSuperseded)
	case now.Record == same && !now.since.IsZero():
		return nil
	}
	wanted.Data[PublishedKey] = []byte(time.Now().UTC().Format(time.RFC3339))
	if there == nil {
		err = s.Client.Create(ctx, wanted, client.FieldOwner(owner.Operator))
	} else {
		there.Data = wanted.Data // The resource version is that of what was looked at.
		err = s.Client.Update(ctx, there, client.FieldOwner(owner.Operator))
	}
	if err != nil {
		return fmt.Errorf("write Secret %s/%s: %w", s.Namespace, name, err)
	}
	return nil
}

// Delete looks at all Secrets of the name first, and deletes none if one is another's.
func (s Secrets) Delete(ctx context.Context, name string, owner Owner) error {
	names, err := s.allOf(ctx, name, owner)
	if err != nil {
		return err
	}
	for _, one := range names {
		if err := s.remove(ctx, one, owner); err != nil {
			return err
		}
	}
	return nil
}

// allOf returns the names of all Secrets of a credential: the readers' copy first, then the generations, the newest first.
func (s Secrets) allOf(ctx context.Context, name string, owner Owner) ([]string, error) { //nolint:gocognit // Two ranges of generations, collected in one way.
	copied, err := s.published(ctx, name, owner)
	if err != nil {
		return nil, err
	}
	last, err := s.owned(ctx, generationName(name, copied.Generation), owner)
	if err != nil {
		return nil, err
	}
	names := []string{name}
	collect := func(from, atLeast int) error {
		for generation := from; ; generation++ {
			secret, err := s.owned(ctx, generationName(name, generation), owner)
			if err != nil {
				return err
			}
			if secret == nil && generation >= atLeast {
				return nil
			}
			if secret != nil && !slices.Contains(names, secret.Name) { // Old ones can have been removed.
				names = slices.Insert(names, 1, secret.Name)
			}
		}
	}
	until := 1
	if last != nil {
		until = copied.Generation
	}
	return names, errors.Join(collect(1, until), collect(copied.Generation+1, 0))
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
