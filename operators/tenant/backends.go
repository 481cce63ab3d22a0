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

// errSetUp tells that a backend cannot be used as it is declared: a person has to mend the TenantBackend, or what it names.
var errSetUp = errors.New("the backend is not set up")

// backend is a TenantBackend with its connections.
type backend struct {
	clusterID string
	plans     v1.Plans
	store     store
	// databases and cache are nil where there is none.
	databases databases
	cache     cache
	// unverified are the addresses of both at which TLS does not verify the server.
	unverified []string
	turns      *turns
}

// store is a store of credentials, and where in it the records of an app are.
type store struct {
	credential.Store

	database, cache func(names.App) string
	// apps finds the apps of a tenant whose credentials carry the mark of their owner.
	apps func(ctx context.Context, of names.Tenant, owner func(names.App) credential.Owner) ([]string, error)
	// prefix is what readers put in front of such a name.
	prefix string
	// generation reads one generation of a record, with one request, and watch knows the versions of the Secrets. Both are nil for a store that is
	// not of Secrets.
	generation func(ctx context.Context, record string, owner credential.Owner, generation int) (credential.Record, error)
	watch      *secretWatch
}

// owner is the mark on what an app has, and with the app "" on what the tenant itself has. It names no uid, so that a Tenant which is deleted
// and made again finds what it had.
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

// backends are the backends that are connected, one for each TenantBackend as it is now.
type backends struct {
	// connect prepares the connections of one.
	connect func(context.Context, declaration, client.Client) (*backend, error)
	// watches are those that the stores of backends use; nil for none.
	watches *secretWatches

	mu   sync.Mutex
	open map[string]*lease
}

// lease is a backend that is in use.
type lease struct {
	*backend

	// made is what it was made of, users how many use it; old tells that there is a newer one.
	made  string
	users int
	old   bool
	// uid and generation are those of the TenantBackend, and read is when it and the Secrets that it names were read last.
	uid        types.UID
	generation int64
	read       time.Time
}

// use returns a backend, which is connected as its TenantBackend says now, and what to call when it is not in use any more.
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

// secretsAge is how old what was read from the Secrets of a TenantBackend may be for a quick check.
const secretsAge = time.Minute

// useRecent is use without reading the Secrets of the TenantBackend, if they were read in the last minute and the TenantBackend has not changed
// since. It is for what changes nothing.
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

// closeUnused closes a backend that nobody uses, and nobody will use.
func (s *backends) closeUnused(held *lease) {
	if held.old && held.users == 0 {
		_ = held.close() // Nobody waits for it, and nobody can do anything about it.
	}
}

// close closes all connections.
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

// declaration is a TenantBackend with what it refers to, as read just now.
type declaration struct {
	*v1.TenantBackend

	clusterID string
	// dsn and admin are the Secrets of the database and of the cache; nil for none.
	dsn, admin *corev1.Secret
}

// fingerprint tells two declarations apart.
func (d declaration) fingerprint() string {
	of := []any{d.UID, d.Generation}
	for _, secret := range []*corev1.Secret{d.dsn, d.admin} {
		if secret != nil {
			of = append(of, secret.UID, secret.ResourceVersion)
		}
	}
	return fmt.Sprintln(of...)
}

// read reads a TenantBackend and what it refers to.
func read(ctx context.Context, api client.Client, name string) (declaration, error) {
	found := declaration{TenantBackend: &v1.TenantBackend{}}
	if err := api.Get(ctx, client.ObjectKey{Name: name}, found.TenantBackend); apierrors.IsNotFound(err) {
		return found, fmt.Errorf("there is no TenantBackend %s: %w; make one, or name another in spec.backendRef of a new Tenant", name, errSetUp)
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

// clusterID is the one that was given, or the uid of a namespace that is as old as its cluster.
func clusterID(ctx context.Context, api client.Client, given string) (string, error) {
	if given != "" {
		return given, nil
	}
	oldest := &corev1.Namespace{}
	if err := api.Get(ctx, client.ObjectKey{Name: "kube-system"}, oldest); err != nil {
		return "", fmt.Errorf("read namespace kube-system for the cluster's id: %w", err)
	}
	return string(oldest.UID), nil
}

// secret reads a Secret that a TenantBackend names.
func secret(ctx context.Context, api client.Client, backend string, ref v1.SecretRef) (*corev1.Secret, error) {
	found := &corev1.Secret{}
	err := api.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, found)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("the TenantBackend %s names the Secret %s/%s, which is not there: %w; make it", backend, ref.Namespace, ref.Name, errSetUp)
	}
	if err != nil {
		return nil, fmt.Errorf("read Secret %s/%s: %w", ref.Namespace, ref.Name, err)
	}
	return found, nil
}
