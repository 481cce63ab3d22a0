package credential

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// ErrUnsettled means that the store's answers contradict each other: a creation fails because the name exists, and a read finds nothing. The
// store is not consistent yet, or a concurrent deletion is in progress. No generated value was used. Call again later.
var ErrUnsettled = errors.New("the store is not consistent yet; retry later")

// Once describes a credential that is generated once, and again only for each new Request.
type Once struct {
	// Store keeps the credential.
	Store Store
	// Name identifies the credential in the store. Derive it from values that do not change, such as the object's name. Do not use a status
	// or a random value.
	Name string
	// Owner is recorded with the credential as its ownership mark. A credential of another owner results in ErrConflict.
	Owner Owner
	// Username is the user that the credential is for. A stored credential of another user results in ErrInvalid.
	Username string
	// Alternate is a second user with the same rights, for systems in which a user has only one password. Each rotation switches to the other
	// user. The default is no second user.
	Alternate string
	// Generate creates the password. The default is the function Generate.
	Generate func() (Password, error)
	// Request is the ID of a rotation request. A new record is generated if it differs from the ID of the latest record and is not "". It
	// is stored with the record, so it must not be secret.
	Request string
	// Generation is the latest generation that Ensure or Converge has returned, for example from a status. The default, 0, means unknown. If
	// the store does not have this generation, Ensure returns ErrBehind and generates nothing. For Converge, see the table in
	// docs/concepts/credentials.md.
	Generation int
}

// Ensure returns the credential from the store and publishes it to readers. It generates a record if the store says that none exists, or
// none for the Request. It returns a record only after the store has acknowledged or returned it. It is safe to call concurrently, again, and
// after any error, and then returns the same record. Blocked reports whether an error needs a person.
func (o Once) Ensure(ctx context.Context) (Record, error) {
	stored, err := o.read(ctx)
	if err != nil {
		return Record{}, err
	}
	latest := stored.latest()
	if known := max(o.Generation, stored.Copy); latest.Generation < known {
		return Record{}, o.behind(latest, known, fmt.Errorf("%w; restore that, or wait if the store has not settled", ErrBehind))
	}
	if latest.Generation == 0 || o.rotates(latest) {
		if stored, err = o.generate(ctx, draft{latest.Generation + 1, o.next(latest), 0, latest.Created}); err != nil {
			return Record{}, err
		}
	}
	if _, err := o.publish(ctx, stored); err != nil {
		return Record{}, err
	}
	return stored.latest(), nil
}

// rotates reports whether the Request asks for a rotation of the latest record.
func (o Once) rotates(latest Record) bool {
	return latest.Generation > 0 && o.Request != "" && o.Request != latest.Request
}

// next returns the user of the record after the latest one.
func (o Once) next(latest Record) string {
	if latest.Username == o.Username && o.Alternate != "" {
		return o.Alternate
	}
	return o.Username
}

// logins returns all users that a record may be for.
func (o Once) logins() []string {
	if o.Alternate == "" {
		return []string{o.Username}
	}
	return []string{o.Username, o.Alternate}
}

// stored holds what the store has of the credential: at least the last records.
type stored struct{ Found }

// latest returns the latest record; the zero Record if there is none.
func (s stored) latest() Record { return s.back(1) }

// previous returns the record before the latest; the zero Record if none is known.
func (s stored) previous() Record { return s.back(2) }

func (s stored) back(n int) Record {
	if len(s.Records) < n {
		return Record{}
	}
	return s.Records[len(s.Records)-n]
}

// read reads the last records from the store. If it finds none, it reads from the first generation on.
func (o Once) read(ctx context.Context) (stored, error) {
	from := max(1, o.Generation-1)
	found, err := o.Store.Read(ctx, o.Name, o.Owner, from)
	if err == nil && len(found.Records) == 0 && from > 1 {
		found, err = o.Store.Read(ctx, o.Name, o.Owner, 1)
	}
	if err != nil {
		return stored{}, fmt.Errorf("credential %s: %w", o.Name, err)
	}
	for _, record := range found.Records {
		if record.Username != o.Username && (o.Alternate == "" || record.Username != o.Alternate) {
			return stored{}, fmt.Errorf("credential %s is for the user %q, not %q: %w; it stays as it is", o.Name, record.Username, o.Username, ErrInvalid)
		}
	}
	return stored{found}, nil
}

// behind returns the error of a store that does not have the generation that is in use.
func (o Once) behind(latest Record, known int, err error) error {
	only := "none"
	if latest.Generation > 0 {
		only = fmt.Sprintf("only generation %d", latest.Generation)
	}
	return fmt.Errorf("credential %s: generation %d is in use, and the store shows %s: %w", o.Name, known, only, err)
}

// draft is a record before it has a password.
type draft struct {
	generation int
	username   string
	overlap    time.Duration
	// after is the creation time of the latest known record. The new record is always later, so clock differences do not change the order.
	after time.Time
}

// created returns the time of creation of the record.
func (d draft) created() time.Time {
	now, earliest := time.Now().UTC().Truncate(time.Second), d.after.UTC().Truncate(time.Second).Add(time.Second)
	if now.Before(earliest) && !d.after.IsZero() {
		return earliest
	}
	return now
}

// generate creates a record and returns what the store has then: this record, or that of a faster writer.
func (o Once) generate(ctx context.Context, from draft) (stored, error) {
	made, err := o.newRecord(from)
	if err != nil {
		return stored{}, err
	}
	return o.keep(ctx, made)
}

// newRecord returns a record with a new password. The store does not have it yet.
func (o Once) newRecord(from draft) (Record, error) {
	generate := o.Generate
	if generate == nil {
		generate = Generate
	}
	password, err := generate()
	if err != nil {
		return Record{}, fmt.Errorf("credential %s: %w", o.Name, err)
	}
	if password.IsZero() {
		return Record{}, fmt.Errorf("credential %s: the generated password is empty", o.Name)
	}
	return Record{
		Username: from.username, Password: password, Generation: from.generation, Request: o.Request, Created: from.created(), Overlap: from.overlap,
	}, nil
}

// keep stores a new record and returns what the store has then: this record, or that of a faster writer.
func (o Once) keep(ctx context.Context, made Record) (stored, error) {
	err := o.Store.Create(ctx, o.Name, o.Owner, made)
	if err != nil && !errors.Is(err, ErrExists) {
		return stored{}, fmt.Errorf("credential %s: %w", o.Name, err)
	}
	if err == nil {
		// Do not read it back: a read can be older than the acknowledged write.
		return stored{Found{Records: []Record{made}}}, nil
	}
	// Another writer was faster, or the answer to our own request was lost.
	o.Generation = 0
	found, err := o.read(ctx)
	if err == nil && found.latest().Generation < made.Generation {
		err = fmt.Errorf("credential %s: %w", o.Name, ErrUnsettled)
	}
	return found, err
}

// unpublished reports whether readers do not get the latest record yet. Converge publishes a record after the system has accepted it. So the
// system may not have an unpublished record.
func (s stored) unpublished() bool { return s.Published != s.latest().Generation }

// publish publishes the latest record if readers do not get it yet, and returns since when they get it.
func (o Once) publish(ctx context.Context, stored stored) (since time.Time, err error) {
	if !stored.unpublished() {
		return stored.Since, nil
	}
	if err := o.Store.Publish(ctx, o.Name, o.Owner, stored.latest()); err != nil {
		return time.Time{}, fmt.Errorf("publish credential %s: %w", o.Name, err)
	}
	return time.Now(), nil
}
