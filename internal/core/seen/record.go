package seen

import (
	"github.com/einmal-operators/einmal/internal/core/record"
)

// Record is what counts of the records of an object: the one that it has, and the one that the process remembers. It does not change: its methods return another
// one. The zero value has none.
type Record struct {
	// value is the record that counts, or nil. stored is the text in the preferred carrier, usable or not.
	value  *record.Record
	stored string
	// inPlace: value was read from stored, and nothing of it is to be written again. remembered: value is that of the process.
	inPlace, remembered bool
	// overruled is the older record that the object has, if value is the remembered one.
	overruled *record.Record
}

// Choose decides between the record that was found in an object and the text of the one that a process remembers for it, "" for none. A record in the object that
// is older was put there with an older version of the object, such as by kubectl rollout undo, and counts as overwritten. The error says that the text cannot be
// decoded.
func Choose(found record.Stored, remembered string) (Record, error) {
	chosen := Record{value: found.Record, stored: found.Preferred, inPlace: found.InPlace()}
	if remembered == "" || remembered == found.Text {
		return chosen, nil
	}
	kept, err := record.Decode(remembered)
	if err != nil {
		return Record{}, err
	}
	if found.Record == nil || found.Partial || found.Record.OlderThan(kept) { // mutant: older-record-believed
		return Record{value: &kept, stored: found.Preferred, remembered: true, overruled: found.Record}, nil
	}
	return chosen, nil
}

// Value returns the record that counts, or nil. It must not be changed.
func (r Record) Value() *record.Record { return r.value }

// Stored returns the text in the preferred carrier, whether or not it is usable; "" for none.
func (r Record) Stored() string { return r.stored }

// InPlace reports whether the record was read from the preferred carrier, and need not be written again.
func (r Record) InPlace() bool { return r.inPlace }

// Remembered reports whether the record is that of the process, because the object has none, or an older one.
func (r Record) Remembered() bool { return r.remembered }

// Before returns the record that the object has, or else the remembered one, or nil.
func (r Record) Before() *record.Record {
	if r.overruled != nil {
		return r.overruled
	}
	return r.value
}

// Saved returns the record after another one took its place in the process.
func (r Record) Saved(value record.Record) Record {
	r.value = &value
	return r
}

// Written returns the record after this text was stored.
func (r Record) Written(text string) Record {
	r.stored, r.inPlace = text, true
	return r
}

// NotWritten returns the record after the object was left without one, because none fits into it.
func (r Record) NotWritten() Record {
	r.stored, r.inPlace = "", false
	return r
}

// Doubted returns a record that is to be written again. If its creation is open, that may have run before.
func (r Record) Doubted(creating bool) Record {
	return r.changed(func(value *record.Record) { value.Doubted = value.Doubted || creating })
}

// Newer returns a record that is to be written again, and is newer than what any client has of it.
func (r Record) Newer() Record {
	return r.changed(func(value *record.Record) { value.Writes++ })
}

// OfLiving corrects a record which says that the delete handlers have finished, although the object is not being deleted. Another client has written it, since
// no deletion is taken back.
func (r Record) OfLiving() Record {
	if r.value == nil || !r.value.Deleted {
		return r
	}
	return r.changed(func(value *record.Record) { value.Deleted, value.Writes = false, value.Writes+1 })
}

// changed returns a record that differs from the one in the object.
func (r Record) changed(change func(*record.Record)) Record {
	next := *r.value
	change(&next)
	r.value, r.inPlace = &next, false
	return r
}
