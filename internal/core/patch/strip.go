package patch

import (
	"maps"
	"slices"
	"strings"

	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/record"
)

// Marks describes what an operator leaves in objects.
type Marks struct {
	Identity, Finalizer string
	// Conditions are the types of the conditions that the framework itself sets.
	Conditions []string
}

// Leftovers are the marks found in one object, and the documents that remove them.
type Leftovers struct {
	// Found names the marks for people. It is empty if there are none.
	Found []string
	// Status is sent first, to the status subresource; Main is sent to the object itself. Status is empty without a subresource.
	Status, Main *Document
	// Held means that the object is being deleted and waits for the operator. Last means that it waits for no other finalizer, so
	// that it disappears together with this one.
	Held, Last bool
}

// Strip finds the marks of an operator in an object. The documents apply only while the marks are unchanged.
func Strip(base object.Body, marks Marks, subresource bool) Leftovers { //nolint:revive // A fact about the kind, not a mode.
	l := Leftovers{Status: New(base), Main: New(base)}
	finalizers := object.List(base, "metadata", "finalizers")
	marked := slices.Contains(finalizers, marks.Finalizer)
	l.Held = marked && object.Text(base, "metadata", "deletionTimestamp") != ""
	l.Last = l.Held && len(finalizers) == 1
	status := l.Main
	if subresource {
		status = l.Status
	}
	l.stripRecords(base, marks, status)
	l.stripAnnotations(base, marks)
	l.stripConditions(marks, status)
	if marked {
		l.Main.RemoveFinalizer(marks.Finalizer)
		l.Found = append(l.Found, "finalizer")
	}
	if l.Last {
		l.Status = New(base) // The status disappears with the object.
	}
	return l
}

// stripRecords removes the record from all places, and the field for records where nothing else is in it.
func (l *Leftovers) stripRecords(base object.Body, marks Marks, status *Document) {
	found := false
	for _, carrier := range record.Carriers() {
		document := l.Main
		if carrier == record.Status {
			document = status
		}
		at := carrier.Path(marks.Identity)
		if object.Text(base, at...) == "" {
			continue
		}
		found = true
		document.Test(at)
		for depth := len(at); carrier == record.Status && depth > 1 && len(object.Map(base, at[:depth-1]...)) == 1; depth-- {
			at = at[:depth-1]
			document.Test(at)
		}
		document.Edit(Edit{Path: at, Remove: true})
	}
	if found {
		l.Found = append(l.Found, "record")
	}
}

// stripAnnotations removes the annotations with which users have sent requests to the operator.
func (l *Leftovers) stripAnnotations(base object.Body, marks Marks) {
	names := []string{object.RecreateAnnotation(marks.Identity), object.ReleaseAnnotation(marks.Identity), object.FormerUIDAnnotation(marks.Identity)}
	for _, token := range slices.Sorted(maps.Keys(object.EffectWords(base, marks.Identity))) {
		names = append(names, object.EffectAnnotation(marks.Identity, token))
	}
	for _, name := range names {
		at := object.Path{"metadata", "annotations", name}
		if _, found := l.Main.Value(at); found {
			l.Main.Test(at)
			l.Main.Edit(Edit{Path: at, Remove: true})
			l.Found = append(l.Found, "annotation "+name)
		}
	}
}

// stripConditions removes the conditions that the framework set for this operator. Their messages contain its identity.
func (l *Leftovers) stripConditions(marks Marks, status *Document) {
	at := object.Path{"status", "conditions"}
	value, _ := status.Value(at)
	list, _ := value.([]any)
	var kept []any
	for _, item := range list {
		one, _ := item.(object.Body)
		name := object.Text(one, "type")
		if slices.Contains(marks.Conditions, name) && strings.Contains(object.Text(one, "message"), " "+marks.Identity+"/") {
			l.Found = append(l.Found, "condition "+name)
			continue
		}
		kept = append(kept, item)
	}
	if len(kept) == len(list) {
		return
	}
	status.Test(at)
	status.Edit(Edit{Path: at, Value: kept, Remove: len(kept) == 0})
}
