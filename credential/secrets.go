package credential

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The keys in the data of a credential's Secret. The username and the password have the keys of the type kubernetes.io/basic-auth. The other
// keys contain the other fields of the Record.
const (
	// UsernameKey is the key of Record.Username.
	UsernameKey = corev1.BasicAuthUsernameKey
	// PasswordKey is the key of Record.Password.
	PasswordKey = corev1.BasicAuthPasswordKey
	// GenerationKey is the key of Record.Generation, a decimal number.
	GenerationKey = "generation"
	// RequestKey is the key of Record.Request.
	RequestKey = "request"
	// CreatedKey is the key of Record.Created, in RFC 3339 format.
	CreatedKey = "created"
	// OverlapKey is the key of Record.Overlap, a duration such as "24h0m0s". It is "0s" for NoOverlap, and missing if the Overlap is 0.
	OverlapKey = "overlap"
	// PublishedKey is the key of the time since which readers get the record, in RFC 3339 format. Only the copy for readers has it.
	PublishedKey = "published"
)

// OwnerAnnotation is the annotation of a Secret that contains the ownership mark.
const OwnerAnnotation = "einmal.dev/credential-of"

// Secrets is a Store of Kubernetes Secrets of the type kubernetes.io/basic-auth. The Secret NAME.gN contains generation N and is immutable. The
// Secret NAME is the copy for readers, which a rotation overwrites. They have no owner reference: the garbage collector must not delete the
// only copy of a password that is in use. To delete them, call Delete.
//
// Secrets needs permission to get, create and update Secrets, and to delete them for Delete:
// einmal.Permissions(&corev1.Secret{}, "get", "create", "update", "delete").
type Secrets struct {
	// Client must read Secrets from the API server, not from a cache. Change.Client does so unless the operator handles Secrets.
	Client client.Client
	// Namespace is the namespace of the Secrets.
	Namespace string
}

var _ Store = Secrets{}

// Create creates the Secret of a generation. It returns ErrExists if a Secret with that name exists.
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

// secret returns a record as a Secret.
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

// Read reads the copy for readers, and the Secrets of the generations, from the one before the published generation on. It sends one request
// for each Secret.
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
			continue // This generation was removed. Later ones can exist.
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

// Generation reads one generation of a name, with one request. It returns ErrInvalid if the generation does not exist, and ErrConflict if it
// belongs to another owner.
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

// malformed returns the error of a Secret that does not contain its generation.
func (s Secrets) malformed(name string, generation int) error {
	return fmt.Errorf("secret %s/%s does not have generation %d with %s, %s and %s: %w; it stays as it is",
		s.Namespace, name, generation, UsernameKey, PasswordKey, CreatedKey, ErrInvalid)
}

// published is the copy for readers.
type published struct {
	Record

	// since is when the copy was published; zero if the copy does not contain it.
	since time.Time
}

// publishedIn returns the record of the copy for readers; the zero Record if there is none or if it is malformed. Publish repairs a malformed
// copy, so this is not an error.
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

// maxGeneration is more than any credential reaches: this package did not write a copy that names a later generation.
const maxGeneration = 1<<31 - 2

// published reads the copy for readers.
func (s Secrets) published(ctx context.Context, name string, owner Owner) (published, error) {
	secret, err := s.owned(ctx, name, owner)
	return publishedIn(secret), err
}

// owned reads a Secret, and returns nil if none has that name. It returns ErrConflict if the Secret does not have the owner's mark.
func (s Secrets) owned(ctx context.Context, name string, owner Owner) (*corev1.Secret, error) {
	found := &corev1.Secret{}
	err := s.Client.Get(ctx, client.ObjectKey{Namespace: s.Namespace, Name: name}, found)
	if isAbsent(err, name) {
		return nil, nil //nolint:nilnil // No Secret is a valid result.
	}
	if err != nil {
		return nil, fmt.Errorf("read Secret %s/%s: %w", s.Namespace, name, err)
	}
	if mark := found.Annotations[OwnerAnnotation]; mark != owner.String() {
		return nil, fmt.Errorf("secret %s/%s has the annotation %s=%q, not %q: %w; remove it if it is not needed, or choose another name",
			s.Namespace, name, OwnerAnnotation, mark, owner, ErrConflict)
	}
	if found.DeletionTimestamp != nil {
		return nil, fmt.Errorf("secret %s/%s is being deleted: %w", s.Namespace, name, ErrInvalid)
	}
	return found, nil
}

// isAbsent reports whether the API server says that the object with this name does not exist. A 404 that does not name the object, for example
// from a server that does not know the path, gives no information about the object.
func isAbsent(err error, name string) bool {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	return ok && apierrors.IsNotFound(err) && status.ErrStatus.Details != nil && status.ErrStatus.Details.Name == name
}

// recordOf returns the record in a Secret.
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

// publishAttempts limits the attempts of Publish when other writers change the copy at the same time.
const publishAttempts = 10

// Publish writes the copy for readers. It overwrites only the version that it has read: if the Secret changes in between, it reads again, up to
// ten times. Then it returns the conflict.
func (s Secrets) Publish(ctx context.Context, name string, owner Owner, record Record) error {
	for attempt := 1; ; attempt++ {
		err := s.publish(ctx, name, owner, record)
		changed := apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err)
		if err == nil || !changed || attempt == publishAttempts {
			return err
		}
	}
}

// CheckPublish does what Publish does, as a dry run. It returns ErrUnwritable if the API server refuses the write: if the copy is immutable, or if
// an admission policy, a quota or a missing permission forbids it.
func (s Secrets) CheckPublish(ctx context.Context, name string, owner Owner, record Record) error {
	err := Secrets{Client: client.NewDryRunClient(s.Client), Namespace: s.Namespace}.Publish(ctx, name, owner, record)
	switch {
	case apierrors.IsBadRequest(err) && strings.Contains(err.Error(), "does not support dry run"): // Of an admission webhook, which is not asked then.
		return nil
	case refused(err):
		return fmt.Errorf("%w: %w; nothing was changed: let the operator write Secret %s/%s", ErrUnwritable, err, s.Namespace, name)
	}
	return err
}

// refused reports whether the API server says that it does not accept a write, also if it is repeated.
func refused(err error) bool {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok {
		return false
	}
	switch status.ErrStatus.Code {
	case http.StatusUnauthorized, http.StatusRequestTimeout, http.StatusConflict, http.StatusTooManyRequests:
		return false
	}
	return status.ErrStatus.Code >= http.StatusBadRequest && status.ErrStatus.Code < http.StatusInternalServerError
}

func (s Secrets) publish(ctx context.Context, name string, owner Owner, record Record) error {
	wanted := s.secret(name, owner, record)
	there, err := s.owned(ctx, name, owner)
	if err != nil {
		return err
	}
	// Compare with the record as a Secret contains it, without fractions of seconds.
	same, err := recordOf(wanted)
	if err != nil {
		return fmt.Errorf("write Secret %s/%s: %w", s.Namespace, name, err)
	}
	switch now := publishedIn(there); {
	case now.Generation > record.Generation:
		return fmt.Errorf("secret %s/%s has generation %d, not %d: %w", s.Namespace, name, now.Generation, record.Generation, ErrSuperseded)
	case now.Record == same && !now.since.IsZero():
		return nil
	case there != nil && there.Immutable != nil && *there.Immutable:
		return fmt.Errorf("secret %s/%s is immutable: %w; delete it, and it is created again with generation %d",
			s.Namespace, name, ErrUnwritable, record.Generation)
	}
	wanted.Data[PublishedKey] = []byte(time.Now().UTC().Format(time.RFC3339))
	if there == nil {
		err = s.Client.Create(ctx, wanted, client.FieldOwner(owner.Operator))
	} else {
		there.Data = wanted.Data // The resource version is that of the Secret that was read.
		err = s.Client.Update(ctx, there, client.FieldOwner(owner.Operator))
	}
	if err != nil {
		return fmt.Errorf("write Secret %s/%s: %w", s.Namespace, name, err)
	}
	return nil
}

// Delete deletes the copy for readers and all generations. It reads all of them first. If one belongs to another owner, it deletes none and
// returns ErrConflict.
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

// allOf returns the names of all Secrets of a credential: the copy for readers, and then the generations, the latest first.
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
			if secret != nil && !slices.Contains(names, secret.Name) { // Earlier generations may have been removed.
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

// remove deletes a Secret of the owner, if it exists.
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
