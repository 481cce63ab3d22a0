package object

import "slices"

// Manager returns the field manager that owns a field according to managedFields, ignoring those in leftOut. If none owns the
// field or a map around it, Manager returns the one that wrote last, or "" if there is none.
func Manager(raw Body, path Path, leftOut ...string) string {
	value, _ := Get(raw, "metadata", "managedFields")
	entries, _ := value.([]any)
	newest, last := "", ""
	for _, item := range entries {
		entry, _ := item.(Body)
		name, at := Text(entry, "manager"), Text(entry, "time")
		if name == "" || slices.Contains(leftOut, name) {
			continue
		}
		if owns(Map(entry, "fieldsV1"), path) {
			return name
		}
		if at >= last {
			newest, last = name, at
		}
	}
	return newest
}

// owns reports whether a fieldsV1 set of managedFields contains the field.
func owns(fields Body, path Path) bool {
	for _, element := range path {
		child, found := fields["f:"+element].(Body)
		if !found {
			return false
		}
		if fields = child; len(fields) == 0 {
			return true
		}
	}
	return true
}
