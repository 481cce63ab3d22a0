package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal/credential"
	v1 "github.com/einmal-operators/einmal/operators/tenant/api/v1"
	"github.com/einmal-operators/einmal/operators/tenant/names"
)

// errSetUp means that a backend cannot be used as configured. A person has to correct the TenantBackend or an object that it names.
var errSetUp = errors.New("the backend is not configured correctly")

// backend is a TenantBackend with its clients.
type backend struct {
	clusterID string
	plans     v1.Plans
	store     store
	// databases and cache are nil if the TenantBackend has none.
	databases databases
	cache     cache
	// unverified are the addresses of servers that TLS does not verify.
	unverified []string
	turns      *turns
}

// store is a credential store with the names of an app's records.
type store struct {
	credential.Store

	database, cache func(names.App) string
	// apps finds the apps of a tenant whose credentials carry their owner's mark.
	apps func(ctx context.Context, of names.Tenant, owner func(names.App) credential.Owner) ([]string, error)
	// prefix is what readers put in front of the name of a record.
	prefix string
	// generation reads one generation of a record with one request, and watch knows the versions of the Secrets. Both are nil if the store
	// does not use Secrets.
	generation func(ctx context.Context, record string, owner credential.Owner, generation int) (credential.Record, error)
	watch      *secretWatch
}

// owner returns the ownership mark of an app, or of the tenant itself if the app is "". It contains no UID, so that a Tenant that is
// deleted and created again finds its resources.
func (b *backend) owner(of names.App) credential.Owner {
	owner := credential.Owner{Operator: identity + "@" + b.clusterID, Name: of.Tenant}
	if of.Name != "" {
		owner.Name += "/" + of.Name
	}
	return owner
}

func (b *backend) close() error {
	if b.databases != nil {
		b.databases.close()
	}
	if b.cache != nil {
		return b.cache.close()
	}
	return nil
}

// backends are the connected backends, one for each TenantBackend in its current state.
type backends struct {
	// connect creates the clients of one backend.
	connect func(context.Context, declaration, client.Client) (*backend, error)
	// watches are the watches that the stores use. It is nil for none.
	watches *secretWatches

	mu   sync.Mutex
	open map[string]*lease
}

// lease is a backend with its users.
type lease struct {
	*backend

	// made is the fingerprint of the declaration, users the number of users. old is true if there is a newer one.
	made  string
	users int
	old   bool
	// uid and generation identify the TenantBackend. read is when it and its Secrets were last read.
	uid        types.UID
	generation int64
	read       time.Time
}

// use returns a backend that is connected as its TenantBackend currently says, and a function to call after use.
func (s *backends) use(ctx context.Context, api client.Client, name string) (*backend, func(), error) {
	began := time.Now()
	declared, err := read(ctx, api, name)
	if err != nil {
		return nil, nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	held := s.open[name]
	if held == nil || held.made != declared.fingerprint() {
		fresh, err := s.connect(ctx, declared, api)
		if err != nil {
			return nil, nil, err
		}
		if held != nil {
			held.old = true
			s.closeUnused(held)
		}
		if s.open == nil {
			s.open = map[string]*lease{}
		}
		fresh.turns = &turns{}
		held = &lease{backend: fresh, made: declared.fingerprint(), uid: declared.UID, generation: declared.Generation}
		s.open[name] = held
	}
	held.users++
	held.read = began
	return held.backend, func() { s.release(held) }, nil
}

// secretsAge is how old the Secrets of a TenantBackend may be for a quick check.
const secretsAge = time.Minute

// useRecent is use without reading the Secrets of the TenantBackend, if they were read within secretsAge and the TenantBackend has not
// changed since. It is only for reads.
func (s *backends) useRecent(ctx context.Context, api client.Client, name string) (*backend, func(), error) {
	declared := &v1.TenantBackend{}
	if err := api.Get(ctx, client.ObjectKey{Name: name}, declared); err != nil {
		return nil, nil, fmt.Errorf("read TenantBackend %s: %w", name, err)
	}
	s.mu.Lock()
	held := s.open[name]
	recent := held != nil && held.uid == declared.UID && held.generation == declared.Generation && time.Since(held.read) < secretsAge
	if recent {
		held.users++
	}
	s.mu.Unlock()
	if !recent {
		return s.use(ctx, api, name)
	}
	return held.backend, func() { s.release(held) }, nil
}

func (s *backends) release(held *lease) {
	s.mu.Lock()
	defer s.mu.Unlock()
	held.users--
	s.closeUnused(held)
}

// closeUnused closes a backend that has no users and was replaced.
func (s *backends) closeUnused(held *lease) {
	if held.old && held.users == 0 {
		_ = held.close() // No caller could handle the error.
	}
}

// close closes all backends.
func (s *backends) close() error {
	s.watches.stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	var failed []error
	for _, held := range s.open {
		failed = append(failed, held.close())
	}
	s.open = nil
	return errors.Join(failed...)
}

// declaration is a TenantBackend with the objects that it refers to.
type declaration struct {
	*v1.TenantBackend

	clusterID string
	// dsn and admin are the Secrets of the database and of the cache. They are nil for none.
	dsn, admin *corev1.Secret
}

// fingerprint identifies the state of a declaration.
func (d declaration) fingerprint() string {
	of := []any{d.UID, d.Generation}
	for _, secret := range []*corev1.Secret{d.dsn, d.admin} {
		if secret != nil {
			of = append(of, secret.UID, secret.ResourceVersion)
		}
	}
	return fmt.Sprintln(of...)
}

// read reads a TenantBackend and the objects that it refers to.
func read(ctx context.Context, api client.Client, name string) (declaration, error) {
	found := declaration{TenantBackend: &v1.TenantBackend{}}
	if err := api.Get(ctx, client.ObjectKey{Name: name}, found.TenantBackend); apierrors.IsNotFound(err) {
		return found, fmt.Errorf("TenantBackend %s not found: %w; create it, or create the Tenant with another spec.backendRef", name, errSetUp)
	} else if err != nil {
		return found, fmt.Errorf("read TenantBackend %s: %w", name, err)
	}
	var err error
	if found.clusterID, err = clusterID(ctx, api, found.Spec.ClusterID); err != nil {
		return found, err
	}
	if of := found.Spec.Postgres; of != nil {
		if found.dsn, err = secret(ctx, api, name, of.DSNSecretRef.SecretRef); err != nil {
			return found, err
		}
	}
	if of := found.Spec.Cache; of != nil && of.Redis != nil {
		found.admin, err = secret(ctx, api, name, of.Redis.AdminSecretRef)
	}
	return found, err
}

// clusterID returns the given cluster ID. The default is the UID of the namespace kube-system, which exists as long as its cluster.
func clusterID(ctx context.Context, api client.Client, given string) (string, error) {
	if given != "" {
		return given, nil
	}
	oldest := &corev1.Namespace{}
	if err := api.Get(ctx, client.ObjectKey{Name: "kube-system"}, oldest); err != nil {
		return "", fmt.Errorf("read namespace kube-system for the default cluster ID: %w", err)
	}
	return string(oldest.UID), nil
}

// secret reads a Secret that a TenantBackend names.
func secret(ctx context.Context, api client.Client, backend string, ref v1.SecretRef) (*corev1.Secret, error) {
	found := &corev1.Secret{}
	err := api.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, found)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("TenantBackend %s: Secret %s/%s not found: %w; create it", backend, ref.Namespace, ref.Name, errSetUp)
	}
	if err != nil {
		return nil, fmt.Errorf("read Secret %s/%s: %w", ref.Namespace, ref.Name, err)
	}
	return found, nil
}
