package apiserver

import (
	"cmp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// WithClock gives the server a clock of its own, as a machine of its own has: it is what objects are stamped with. How
// long things last, such as a watch, is not measured with it. The server calls it from several goroutines.
func WithClock(now func() time.Time) Option {
	return func(s *Server) error {
		s.clock = now
		return nil
	}
}

// now is the server's time.
func (s *Server) now() metav1.Time {
	if s.clock == nil {
		return metav1.Now()
	}
	return metav1.NewTime(s.clock())
}

// stamp gives the entries of managed fields that this write made or touched the server's time: the library which keeps
// them knows only that of the process.
func (w *write) stamp(object, live *unstructured.Unstructured) {
	if w.server.clock == nil {
		return
	}
	entries := object.GetManagedFields()
	if len(entries) == 0 {
		return
	}
	var known []metav1.ManagedFieldsEntry
	if live != nil {
		known = live.GetManagedFields()
	}
	now := w.server.now()
	for i := range entries {
		if !slices.ContainsFunc(known, func(old metav1.ManagedFieldsEntry) bool { return untouched(entries[i], old) }) {
			entries[i].Time = &now
		}
	}
	slices.SortFunc(entries, inOrder)
	object.SetManagedFields(entries)
}

func untouched(entry, old metav1.ManagedFieldsEntry) bool {
	return entry.Manager == old.Manager && entry.Operation == old.Operation && entry.Subresource == old.Subresource &&
		entry.APIVersion == old.APIVersion && entry.Time.Equal(old.Time)
}

// inOrder is the order in which the library writes the entries.
func inOrder(one, other metav1.ManagedFieldsEntry) int {
	return cmp.Or(
		cmp.Compare(one.Operation, other.Operation), cmp.Compare(seconds(one.Time), seconds(other.Time)),
		cmp.Compare(one.Manager, other.Manager), cmp.Compare(one.APIVersion, other.APIVersion),
		cmp.Compare(one.Subresource, other.Subresource),
	)
}

func seconds(at *metav1.Time) int64 {
	if at == nil {
		return 0
	}
	return at.Unix()
}
