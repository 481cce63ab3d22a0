package record

import "github.com/einmal-operators/einmal/internal/core/object"

// Carry returns the body with its records, of all operators, replaced by those that the object has now. The copy that handlers get
// has no records, and one from a cache may have old ones. A full update with such a copy must neither delete nor revert records.
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

// Strip returns the body without records. It removes the annotations map if that becomes empty, but keeps an empty status.
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

// areRecords reports whether a status field is the one for records, and not a field of the same name that belongs to the kind.
func areRecords(value any) bool {
	records, isMap := value.(object.Body)
	for _, record := range records {
		if _, isText := record.(string); !isText {
			return false
		}
	}
	return isMap || value == nil
}

// MayChangeRecords reports whether a merge patch may change a record: by naming one, or by removing what contains it. The difference
// between a copy with the record and one without it does that.
func MayChangeRecords(merge object.Body) bool {
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

// WithoutRecordChanges returns the merge patch without its changes of records. Where the patch removes everything, the result names the other
// fields that the object has now instead.
func WithoutRecordChanges(merge, now object.Body) object.Body {
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

// nulls returns a merge patch that removes each of the fields.
func nulls(fields object.Body) object.Body {
	removing := make(object.Body, len(fields))
	for key := range fields {
		removing[key] = nil
	}
	return removing
}
