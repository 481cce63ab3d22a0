package record

import "github.com/einmal-operators/einmal/internal/core/object"

// Carry returns the body with the records that the object has now, of whatever operator, in place of its own: a copy
// that handlers were given has none, and one that was read from a cache may have old ones. A full update with such a
// copy must neither drop nor roll back what is remembered.
func Carry(now, into object.Body) object.Body {
	into = Strip(into)
	if records, found := object.Get(now, "status", RecordsField); found && areRecords(records) {
		into = object.With(into, object.Path{"status", RecordsField}, records)
	}
	for key, value := range object.Map(now, "metadata", "annotations") {
		if object.IsRecord(key, value) {
			into = object.With(into, object.Path{"metadata", "annotations", key}, value)
		}
	}
	return into
}

// Strip returns the body without records. Annotations that are none any more go with the last of them; a status stays.
func Strip(body object.Body) object.Body {
	if records, found := object.Get(body, "status", RecordsField); found && areRecords(records) {
		body = object.Without(body, object.Path{"status", RecordsField})
	}
	stripped := false
	for key, value := range object.Map(body, "metadata", "annotations") {
		if object.IsRecord(key, value) {
			body, stripped = object.Without(body, object.Path{"metadata", "annotations", key}), true
		}
	}
	if stripped && len(object.Map(body, "metadata", "annotations")) == 0 {
		body = object.Without(body, object.Path{"metadata", "annotations"})
	}
	return body
}

// areRecords tells the room for records in a status from a field of the same name that a kind has for itself.
func areRecords(value any) bool {
	records, isMap := value.(object.Body)
	for _, record := range records {
		if _, isText := record.(string); !isText {
			return false
		}
	}
	return isMap || value == nil
}

// Threatens tells whether a merge patch may touch a record: it names one, or takes away all that it lies in. The
// difference of a copy with and a copy without the record does.
func Threatens(merge object.Body) bool {
	annotations, touched := object.Get(merge, "metadata", "annotations")
	named, isMap := annotations.(object.Body)
	if touched && !isMap {
		return true
	}
	for key := range named {
		if object.MayBeRecord(key) {
			return true
		}
	}
	status, touched := object.Get(merge, "status")
	fields, isMap := status.(object.Body)
	_, records := fields[RecordsField]
	return records || touched && !isMap
}

// Spare returns the merge patch without what it does to records. Where it takes away everything, it names instead what
// the object has now beside them.
func Spare(merge, now object.Body) object.Body {
	for _, parent := range []object.Path{{"metadata", "annotations"}, {"status"}} {
		if value, found := object.Get(merge, parent...); found && value == nil {
			merge = object.With(merge, parent, nulls(object.Map(now, parent...)))
		}
	}
	held := object.Map(now, "metadata", "annotations")
	for key, value := range object.Map(merge, "metadata", "annotations") {
		if object.IsRecord(key, held[key]) || object.IsRecord(key, value) {
			merge = object.Without(merge, object.Path{"metadata", "annotations", key})
		}
	}
	records, _ := object.Get(now, "status", RecordsField)
	if areRecords(records) {
		merge = object.Without(merge, object.Path{"status", RecordsField})
	}
	return merge
}

// nulls is a merge patch that takes each of the fields away.
func nulls(fields object.Body) object.Body {
	removing := make(object.Body, len(fields))
	for key := range fields {
		removing[key] = nil
	}
	return removing
}
