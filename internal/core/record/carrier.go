package record

import "github.com/einmal-operators/einmal/internal/core/object"

// Carrier is the place in an object where the record is kept.
type Carrier string

// The carriers. Status survives a replace of the object and is one write with the user's status; Annotation works
// with every kind. Apart is an annotation of another name, for kinds that have the annotations of their owners copied over
// theirs, records too: ReplicaSets have those of their Deployment.
const (
	Status     Carrier = "status"
	Annotation Carrier = "annotation"
	Apart      Carrier = "annotation apart"
)

// Carriers are all of them.
func Carriers() []Carrier { return []Carrier{Status, Annotation, Apart} }

// RecordsField is the field of a status that holds records, a map by operator identity.
const RecordsField = "records"

// Path is where the operator with this identity keeps its record.
func (c Carrier) Path(identity string) object.Path {
	switch c {
	case Status:
		return object.Path{"status", RecordsField, identity}
	case Apart:
		return object.Path{"metadata", "annotations", object.RecordAnnotation("apart." + identity)}
	default:
		return object.Path{"metadata", "annotations", object.RecordAnnotation(identity)}
	}
}

// Other is the carrier that an earlier release may have written to. What lies there beside one that is apart is the owner's.
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

// Stored is what an object holds of the operator's record.
type Stored struct {
	// Record is the usable record, nil for none; Text is what it was decoded from.
	Record *Record
	Text   string
	// Preferred is the text in the preferred carrier, usable or not: a conditional write tests it.
	Preferred string
}

// InPlace reports whether the usable record was read from the preferred carrier.
func (s Stored) InPlace() bool { return s.Record != nil && s.Text == s.Preferred }

// Read finds the record of the operator in the object, in the preferred carrier first and then in the other.
// A record of another uid belongs to the object that a manifest was copied from: it is not usable. The error tells of
// text that is no record of ours; then there is no usable record either.
func Read(body object.Body, identity string, preferred Carrier) (Stored, error) {
	found := Stored{Preferred: object.Text(body, preferred.Path(identity)...)}
	other, _ := preferred.Other()
	var err error
	for _, text := range []string{found.Preferred, object.Text(body, other.Path(identity)...)} {
		if text == "" {
			continue
		}
		r, failed := Decode(text)
		if failed != nil {
			err = failed
			continue
		}
		if r.UID == object.Text(body, "metadata", "uid") {
			found.Record, found.Text = &r, text
			return found, nil
		}
	}
	return found, err
}

// Usable reports whether a text is a record of the object with this uid.
func Usable(text, uid string) bool {
	if text == "" {
		return false
	}
	r, err := Decode(text)
	return err == nil && r.UID == uid
}

// Cut returns the body without the records of any operator, so that handlers neither see nor change them: one that sets
// all annotations anew must not take another operator's memory away.
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
