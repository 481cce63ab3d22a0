package object

import "slices"

// Manager names who owns a field by the object's managedFields, other than those left out: the one that has the field or
// a map around it, else the one that has written last. It is "" where nobody is known.
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

// owns tells whether a set of fields, as managedFields writes it, has this one.
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
