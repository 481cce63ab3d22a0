package credential_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal/credential"
	"github.com/einmal-operators/einmal/internal/testkit/apiserver"
)

var errBroken = errors.New("the store does not answer")

// troubled is a store with which things go wrong.
type troubled struct {
	credential.Store

	// reads fail in this order, nil for one that does not; creates too, after the record was stored if that is lost.
	reads, creates []error
	lost           bool
	// writes counts what was created and published.
	writes int
}

// errBlank is how a read fails which shows nothing of what is there.
var errBlank = errors.New("nothing is shown")

func (s *troubled) next(of *[]error) error {
	if len(*of) == 0 {
		return nil
	}
	err := (*of)[0]
	*of = (*of)[1:]
	return err
}

func (s *troubled) Read(ctx context.Context, name string, owner credential.Owner, from int) (credential.Found, error) {
	if err := s.next(&s.reads); errors.Is(err, errBlank) {
		return credential.Found{}, nil
	} else if err != nil {
		return credential.Found{}, err
	}
	return s.Store.Read(ctx, name, owner, from)
}

func (s *troubled) Publish(ctx context.Context, name string, owner credential.Owner, record credential.Record) error {
	s.writes++
	return s.Store.Publish(ctx, name, owner, record)
}

func (s *troubled) Create(ctx context.Context, name string, owner credential.Owner, record credential.Record) error {
	err := s.next(&s.creates)
	if err != nil && !s.lost {
		return err
	}
	s.writes++
	return errors.Join(s.Store.Create(ctx, name, owner, record), err)
}

// fixture is a store of Secrets in a server of its own, and a generator that counts.
type fixture struct {
	api       client.Client
	store     *troubled
	mu        sync.Mutex
	generated int
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	_, api := apiserver.Start(t)
	return &fixture{api: api, store: &troubled{Store: credential.Secrets{Client: api, Namespace: "default"}}}
}

func testOwner() credential.Owner {
	return credential.Owner{Operator: "op.example.com", Namespace: "team", Name: "app"}
}

func (f *fixture) once() credential.Once {
	return credential.Once{Store: f.store, Name: "app-db", Owner: testOwner(), Username: "app", Generate: func() (credential.Password, error) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.generated++
		return credential.NewPassword(fmt.Sprint("password-", f.generated)), nil
	}}
}

// good is what a Secret of the first generation holds, and with the time of its publication the one for readers.
func good(password string) map[string]string {
	return map[string]string{
		"username": "app", "password": password, "generation": "1", "request": "", "created": "2000-01-01T00:00:00Z", "published": "2000-01-01T00:00:00Z",
	}
}

// with is a map with another value.
func with(of map[string]string, key, value string) map[string]string {
	of[key] = value
	return of
}

// planted is the Secret of the first generation.
func planted(owner string, data map[string]string) *corev1.Secret {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "app-db.g1"}, StringData: data}
	if owner != "" {
		secret.Annotations = map[string]string{credential.OwnerAnnotation: owner}
	}
	return secret
}

// What is generated, what is returned, and what stays as
// it is, for every state of the store and every kind of trouble.
func TestWhatIsStoredDecides(t *testing.T) {
	t.Parallel()
	ours := testOwner().String()
	old := good("old")
	for name, test := range map[string]struct {
		there   *corev1.Secret
		reads   []error
		creates []error
		lost    bool

		want      string // the password
		err       error
		generated int
	}{
		"nothing is there":                        {want: "password-1", generated: 1},
		"it is there":                             {there: planted(ours, old), want: "old"},
		"another's, planted under our name":       {there: planted("op.example.com/team/other", old), err: credential.ErrConflict},
		"unmarked":                                {there: planted("", old), err: credential.ErrConflict},
		"ours without a password":                 {there: planted(ours, map[string]string{"username": "app"}), err: credential.ErrInvalid},
		"ours and empty":                          {there: planted(ours, nil), err: credential.ErrInvalid},
		"ours, of another generation":             {there: planted(ours, with(good("old"), "generation", "2")), err: credential.ErrInvalid},
		"ours, made at no time":                   {there: planted(ours, with(good("old"), "created", "once")), err: credential.ErrInvalid},
		"ours for another user":                   {there: planted(ours, with(good("old"), "username", "x")), err: credential.ErrInvalid},
		"the store cannot be read":                {reads: []error{errBroken}, err: errBroken},
		"it is not stored":                        {creates: []error{errBroken}, err: errBroken, generated: 1},
		"the answer is lost":                      {creates: []error{errBroken}, lost: true, err: errBroken, generated: 1},
		"another writer was faster":               {there: planted(ours, old), reads: []error{errBlank}, want: "old", generated: 1},
		"another owner was faster":                {there: planted("x/y/z", old), reads: []error{errBlank}, err: credential.ErrConflict, generated: 1},
		"taken, and not there: it is not settled": {there: planted(ours, old), reads: []error{errBlank, errBlank}, err: credential.ErrUnsettled, generated: 1},
		"taken, and then not to be read":          {there: planted(ours, old), reads: []error{errBlank, errBroken}, err: errBroken, generated: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			if test.there != nil {
				if err := f.api.Create(t.Context(), test.there); err != nil {
					t.Fatal(err)
				}
			}
			f.store.reads, f.store.creates, f.store.lost = test.reads, test.creates, test.lost
			found, err := f.once().Ensure(t.Context())
			if !errors.Is(err, test.err) || found.Password.Reveal() != test.want || f.generated != test.generated {
				t.Errorf("%q and %v with %d generated, want %q and %v with %d", found.Password.Reveal(), err, f.generated, test.want, test.err, test.generated)
			}
			speaksRightly(t, err)
			f.settled(t, test.there, test.err)
		})
	}
}

// speaksRightly shows that an error names the credential, and no password.
func speaksRightly(t *testing.T, err error) {
	t.Helper()
	if err != nil && (strings.Contains(err.Error(), "old") || strings.Contains(err.Error(), "password-1") || !strings.Contains(err.Error(), "app-db")) {
		t.Errorf("the error shows a password, or does not name the credential: %v", err)
	}
}

// settled shows that what was there stayed, and that another call gives what is stored, without generating where there is something.
func (f *fixture) settled(t *testing.T, there *corev1.Secret, before error) {
	t.Helper()
	if there != nil {
		now := &corev1.Secret{}
		if err := f.api.Get(t.Context(), client.ObjectKeyFromObject(there), now); err != nil || now.ResourceVersion != there.ResourceVersion {
			t.Errorf("what was there was touched: %v, %v", now, err)
		}
	}
	first, err := f.once().Ensure(t.Context())
	if errors.Is(before, credential.ErrConflict) || errors.Is(before, credential.ErrInvalid) {
		if !errors.Is(err, before) {
			t.Errorf("the second call says %v, the first said %v", err, before)
		}
		return
	}
	generated := f.generated
	second, again := f.once().Ensure(t.Context())
	if err != nil || again != nil || first != second || f.generated != generated {
		t.Errorf("it does not settle: %v, %v; another %d generated", err, again, f.generated-generated)
	}
}

// 16 at the same time generate what they like; one is stored, and all use that.
func TestARaceHasOneResult(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	results := make(chan string, 16)
	for range 16 {
		go func() {
			once := f.once()
			once.Store = credential.Secrets{Client: f.api, Namespace: "default"}
			found, err := once.Ensure(context.Background())
			results <- fmt.Sprint(found.Password.Reveal(), err)
		}()
	}
	seen := map[string]int{}
	for range 16 {
		seen[<-results]++
	}
	stored, err := f.store.Read(t.Context(), "app-db", testOwner(), 1)
	if err != nil || len(stored.Records) != 1 || len(seen) != 1 || seen[stored.Records[0].Password.Reveal()+"<nil>"] != 16 {
		t.Errorf("stored %v; the results are %v", err, seen)
	}
}

func TestASecretIsDeletedByItsOwnerOnly(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	if err := f.store.Delete(t.Context(), "app-db", testOwner()); err != nil {
		t.Errorf("delete what is not there: %v", err)
	}
	if _, err := f.once().Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	other := testOwner()
	other.Name = "other"
	if err := f.store.Delete(t.Context(), "app-db", other); !errors.Is(err, credential.ErrConflict) {
		t.Errorf("another deletes it: %v", err)
	}
	if err := f.store.Delete(t.Context(), "app-db", testOwner()); err != nil {
		t.Error(err)
	}
	if found, err := f.store.Read(t.Context(), "app-db", testOwner(), 1); err != nil || len(found.Records) > 0 {
		t.Errorf("it is still there: %v", err)
	}
	empty := f.once()
	empty.Generate = func() (credential.Password, error) { return credential.Password{}, nil }
	if _, err := empty.Ensure(t.Context()); err == nil || !strings.Contains(err.Error(), "empty") {
		t.Errorf("an empty password is stored: %v", err)
	}
}
