package record

import (
	"errors"

	"github.com/einmal-operators/einmal/internal/core/object"
)

// Carrier is the place in an object where the record is stored.
type Carrier string

// The carriers. Status survives a replace of the object, and is written together with the user's status. Annotation works with
// every kind. SeparateAnnotation is an annotation with another name, for kinds whose owners copy their annotations, including records, onto
// them: a Deployment does that to its ReplicaSets.
const (
	Status             Carrier = "status"
	Annotation         Carrier = "annotation"
	SeparateAnnotation Carrier = "annotation apart"
)

// Carriers returns all carriers.
func Carriers() []Carrier { return []Carrier{Status, Annotation, SeparateAnnotation} }

// RecordsField is the status field that holds records, as a map by operator identity.
const RecordsField = "records"

// Path returns where the operator with this identity stores its record.
func (c Carrier) Path(identity string) object.Path {
	switch c {
	case Status:
		return object.Path{"status", RecordsField, identity}
	case SeparateAnnotation:
		return object.Path{"metadata", "annotations", object.RecordAnnotation("apart." + identity)}
	default:
		return object.Path{"metadata", "annotations", object.RecordAnnotation(identity)}
	}
}

// Other returns the carrier that an earlier release may have used. For SeparateAnnotation there is none: the other record is the owner's.
func (c Carrier) Other() (other Carrier, found bool) {
	switch c {
	case Status:
		return Annotation, true
	case Annotation:
		return Status, true
	default:
		return c, false
	}
}

// Stored is the record of the operator as found in an object.
type Stored struct {
	// Record is the usable record, or nil. Text is what it was decoded from, and From is where that is stored.
	Record *Record
	Text   string
	From   Carrier
	// Preferred is the text in the preferred carrier, whether or not it is usable. A conditional write tests it.
	Preferred string
	// Partial means that of the record in the other carrier only the progress is read: see OnlyProgress.
	Partial bool
}

// InPlace reports whether the usable record was read from the preferred carrier.
func (s *Stored) InPlace() bool { return s.Record != nil && s.Text == s.Preferred && !s.Partial }

// Read finds the operator's record in the object: in the preferred carrier, or in the other one as far as that counts. A record with another
// uid belongs to the object that a manifest was copied from, and is not usable. The error is about text that is not a valid record;
// in that case there is no usable record. With ErrNewer, the one in the other carrier is not usable either.
func Read(body object.Body, identity string, preferred Carrier, when Former) (Stored, error) {
	found := Stored{Preferred: object.Text(body, preferred.Path(identity)...)}
	uid := object.Text(body, "metadata", "uid")
	var err error
	if found.Preferred != "" {
		r, ours, failed := DecodeOf(found.Preferred, uid)
		if err = failed; ours {
			found.Record, found.Text, found.From = &r, found.Preferred, preferred
		}
	}
	if other, exists := preferred.Other(); exists && !errors.Is(err, ErrNewer) {
		failed := found.former(object.Text(body, other.Path(identity)...), uid, preferred, when)
		if errors.Is(failed, ErrNewer) || err == nil {
			err = failed
		}
	}
	switch {
	case errors.Is(err, ErrNewer):
		return Stored{Preferred: found.Preferred}, err
	case found.Record != nil:
		return found, nil
	default:
		return found, err
	}
}

// OlderThan reports whether this record was stored before another one of the same object.
func (r Record) OlderThan(other Record) bool { return r.Writes < other.Writes }

// Usable reports whether the text is a record of the object with this uid.
func Usable(text, uid string) bool {
	if text == "" {
		return false
	}
	_, ours, _ := DecodeOf(text, uid)
	return ours
}

// Cut returns the body without the records of any operator, so that handlers neither see nor change them. A handler that replaces
// all annotations must not delete the record of another operator.
func Cut(body object.Body) object.Body {
	body = Strip(body)
	if annotations := object.Map(body, "metadata", "annotations"); annotations != nil && len(annotations) == 0 {
		body = object.Without(body, object.Path{"metadata", "annotations"})
	}
	if status := object.Map(body, "status"); status != nil && len(status) == 0 {
		body = object.Without(body, object.Path{"status"})
	}
	return body
}
