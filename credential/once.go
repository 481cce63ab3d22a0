package credential

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// ErrUnsettled tells that the store says both that a name is taken and that nothing is there: it has not settled, or somebody deletes what
// is there. Nothing was generated in vain that anybody could use; call again later.
var ErrUnsettled = errors.New("the store is not settled: call again later")

// Once is a credential that is generated once, and again when somebody asks for that in words.
type Once struct {
	Store Store
	// Name is where the store keeps it. It is made of what does not change: never of a status or of chance.
	Name  string
	Owner Owner
	// Username is whom it is for. A record of another user is ErrInvalid.
	Username string
	// Alternate is a second user of the same rights, where a user has one password only: rotations go from one to the other. "" is none.
	Alternate string
	// Generate makes the password; nil is the function Generate.
	Generate func() (Password, error)
	// Request is the id of a rotation, which whoever asks for one chooses. A record is generated in answer to each id that is not the one
	// of the latest record; the same id asks for nothing more, and neither does "". It is stored with the record, so it must not be secret.
	Request string
	// Generation is the latest one that Ensure or Converge is known to have returned, such as from a status; 0 if none is known. If the store
	// does not show it, that is an error instead of a reason to generate.
	Generation int
}

// Ensure returns the credential from the store, and generates it if the store says that there is none, or none for the Request. It returns
// only what the store has acknowledged or gives back, and publishes it. Calling it again, at the same time, or after any error is safe, and
// returns the same. Of errors see Blocked.
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

// rotates tells whether another record was asked for than the latest.
func (o Once) rotates(latest Record) bool {
	return latest.Generation > 0 && o.Request != "" && o.Request != latest.Request
}

// next is the user whom a record after the latest one is for.
func (o Once) next(latest Record) string {
	if latest.Username == o.Username && o.Alternate != "" {
		return o.Alternate
	}
	return o.Username
}

// logins are all users that a record may be for.
func (o Once) logins() []string {
	if o.Alternate == "" {
		return []string{o.Username}
	}
	return []string{o.Username, o.Alternate}
}

// stored is what the store has of the credential: the last records at least.
type stored struct{ Found }

// latest is the record that counts; the zero Record if there is none.
func (s stored) latest() Record { return s.back(1) }

// previous is the record before the latest; the zero Record if none is known.
func (s stored) previous() Record { return s.back(2) }

func (s stored) back(n int) Record {
	if len(s.Records) < n {
		return Record{}
	}
	return s.Records[len(s.Records)-n]
}

// read reads the last records from the store, and if there are none all.
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

// behind is the error of a store that does not show the generation that is known to be in use.
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
	// after is when the latest record that is known was created. Clocks differ, and the order of records must not depend on them.
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

// generate makes a record where the store has none, and returns what the store has then: that record, or the one of a faster writer.
func (o Once) generate(ctx context.Context, from draft) (stored, error) {
	generate := o.Generate
	if generate == nil {
		generate = Generate
	}
	password, err := generate()
	if err != nil {
		return stored{}, fmt.Errorf("credential %s: %w", o.Name, err)
	}
	if password.IsZero() {
		return stored{}, fmt.Errorf("credential %s: the generated password is empty", o.Name)
	}
	made := Record{
		Username: from.username, Password: password, Generation: from.generation, Request: o.Request, Created: from.created(), Overlap: from.overlap,
	}
	err = o.Store.Create(ctx, o.Name, o.Owner, made)
	if err != nil && !errors.Is(err, ErrExists) {
		return stored{}, fmt.Errorf("credential %s: %w", o.Name, err)
	}
	if err == nil {
		// It need not be read: a store may not show yet what it has acknowledged.
		return stored{Found{Records: []Record{made}}}, nil
	}
	// Somebody was faster, or it is our own request whose answer was lost.
	o.Generation = 0
	found, err := o.read(ctx)
	if err == nil && found.latest().Generation < from.generation {
		err = fmt.Errorf("credential %s: %w", o.Name, ErrUnsettled)
	}
	return found, err
}

// unpublished tells that readers do not get the latest record yet. They get it after the system has accepted it, so it may not have that.
func (s stored) unpublished() bool { return s.Published != s.latest().Generation }

// publish gives readers the latest record, if they do not get it yet, and tells since when they do.
func (o Once) publish(ctx context.Context, stored stored) (since time.Time, err error) {
	if !stored.unpublished() {
		return stored.Since, nil
	}
	if err := o.Store.Publish(ctx, o.Name, o.Owner, stored.latest()); err != nil {
		return time.Time{}, fmt.Errorf("publish credential %s: %w", o.Name, err)
	}
	return time.Now(), nil
}
