package kube

import (
	"bytes"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/einmal-operators/einmal/internal/core/record"
)

// RecordOwners knows the objects whose record another client has written last, such as kubectl rollout undo. Such a record can be older than
// the one that the operator wrote. The API server keeps in the managed fields of an object which client has written which field last. A nil
// RecordOwners knows no object.
type RecordOwners struct {
	identity string
	// keys are the names of the fields that hold records, as managed fields write them.
	keys map[record.Carrier][]byte

	mu     sync.Mutex
	others map[types.UID]writers
}

// writers are the field managers of one object's records, by where a record is stored.
type writers map[record.Carrier]string

// NewRecordOwners returns the RecordOwners of an operator, whose identity is also its field manager.
func NewRecordOwners(identity string) *RecordOwners {
	owners := &RecordOwners{identity: identity, keys: map[record.Carrier][]byte{}, others: map[types.UID]writers{}}
	for _, carrier := range record.Carriers() {
		path := carrier.Path(identity)
		owners.keys[carrier] = []byte(`"f:` + path[len(path)-1] + `"`)
	}
	return owners
}

// Strip looks at the managed fields of an object and then removes them. It is a transformation of a cache.
func (o *RecordOwners) Strip(of any) (any, error) {
	if one, err := meta.Accessor(of); err == nil && len(one.GetManagedFields()) > 0 { // client-go transforms some objects twice.
		o.note(one)
	}
	return cache.TransformStripManagedFields()(of)
}

func (o *RecordOwners) note(one metav1.Object) {
	found := o.otherWriters(one.GetManagedFields())
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(found) == 0 {
		delete(o.others, one.GetUID())
	} else {
		o.others[one.GetUID()] = found
	}
}

// otherWriters returns the field managers that own a record which the operator does not own too.
func (o *RecordOwners) otherWriters(entries []metav1.ManagedFieldsEntry) writers {
	var found writers
	for carrier, key := range o.keys {
		if other := o.otherWriter(entries, key); other != "" {
			if found == nil {
				found = writers{}
			}
			found[carrier] = other
		}
	}
	return found
}

// otherWriter returns the field manager that owns a field, or "" if the operator owns it too, or no client does.
func (o *RecordOwners) otherWriter(entries []metav1.ManagedFieldsEntry, key []byte) (other string) {
	for _, entry := range entries {
		if entry.FieldsV1 == nil || !bytes.Contains(entry.FieldsV1.GetRawBytes(), key) {
			continue
		}
		if entry.Manager == o.identity {
			return ""
		}
		other = entry.Manager
	}
	return other
}

// Other returns the field manager that has written the record in a carrier of an object last, or "" if that is not known to be another client.
func (o *RecordOwners) Other(uid string, carrier record.Carrier) string {
	if o == nil {
		return ""
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.others[types.UID(uid)][carrier]
}

// Forget forgets an object that is gone.
func (o *RecordOwners) Forget(uid string) {
	if o == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.others, types.UID(uid))
}
