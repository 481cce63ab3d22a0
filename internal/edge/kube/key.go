package kube

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// keyField is the entry of the Secret that holds the key. keyBytes is the length of the key.
const (
	keyField = "digest-key"
	keyBytes = 32
)

// ErrNoKey means that there is no key for digests. The wrapping error names the remedy.
var ErrNoKey = errors.New("no key for the digests of Secrets")

// DigestKey is the Secret in which an operator stores the key of its digests.
type DigestKey struct {
	// Client reads from the API server: a cached read would cache every Secret of the cluster.
	Client client.Client
	Place  types.NamespacedName
	Owner  string
}

// Load reads the key, and creates one if there is none. The Secret is created once and never changed, so that processes that start at the
// same time get the same key.
func (d DigestKey) Load(ctx context.Context) ([]byte, error) {
	key, err := d.read(ctx)
	if !apierrors.IsNotFound(err) {
		return key, d.explain("read", err)
	}
	err = d.create(ctx)
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return nil, d.explain("create", err)
	}
	key, err = d.read(ctx)
	return key, d.explain("read", err)
}

func (d DigestKey) read(ctx context.Context) ([]byte, error) {
	found := &corev1.Secret{}
	if err := d.Client.Get(ctx, d.Place, found); err != nil {
		return nil, err
	}
	if key := found.Data[keyField]; len(key) == keyBytes {
		return key, nil
	}
	return nil, fmt.Errorf("entry %s with %d bytes is missing; delete the Secret to get a new key "+
		"(update handlers do not run for changes made until then)", keyField, keyBytes)
}

func (d DigestKey) create(ctx context.Context) error {
	key := make([]byte, keyBytes)
	if _, err := rand.Read(key); err != nil {
		return err
	}
	fixed := true
	return d.Client.Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: d.Place.Namespace, Name: d.Place.Name},
		Data:       map[string][]byte{keyField: key},
		Immutable:  &fixed,
	}, client.FieldOwner(d.Owner))
}

// explain adds the remedy to an error.
func (d DigestKey) explain(verb string, err error) error {
	switch {
	case err == nil:
		return nil
	case LacksPermission(err):
		return fmt.Errorf("%w: %s Secret %s: %w; grant the operator's account the verbs get and create on secrets "+
			"in that namespace, with a Role, or name another namespace with einmal.StateNamespace or --state-namespace", ErrNoKey, verb, d.Place, err)
	case apierrors.IsNotFound(err):
		return fmt.Errorf("%w: %s Secret %s: %w; create the namespace, or name another with einmal.StateNamespace or --state-namespace",
			ErrNoKey, verb, d.Place, err)
	default:
		return fmt.Errorf("%w: %s Secret %s: %w", ErrNoKey, verb, d.Place, err)
	}
}
