package record

import (
	"fmt"
	"slices"
	"strings"
)

// Places are the carriers in which records of one kind may be, that of the newest release first. There is more than one while records move.
// The operator stores them outside of the objects, where users who may only annotate cannot write. Nil means that nothing is known.
type Places []Carrier

// placesSeparator separates places in their text form.
const placesSeparator = ","

// ParsePlaces parses what Places.String returned. Its error says what is allowed.
func ParsePlaces(text string) (Places, error) {
	var places Places
	for part := range strings.SplitSeq(text, placesSeparator) {
		carrier := Carrier(part)
		if _, movable := carrier.Other(); !movable || len(places) > 0 && places[len(places)-1] == carrier || len(places) == maxPlaces {
			return nil, fmt.Errorf("invalid places of records %q, want %s and %s in turn, at most %d, such as %s", text, Status, Annotation, maxPlaces,
				Places{Status, Annotation})
		}
		places = append(places, carrier)
	}
	return places, nil
}

// maxPlaces is enough to say what Places.Former distinguishes.
const maxPlaces = 3

// String returns the places as one text, such as "status,annotation".
func (p Places) String() string {
	texts := make([]string, len(p))
	for i, place := range p {
		texts[i] = string(place)
	}
	return strings.Join(texts, placesSeparator)
}

// Moved returns the places when a release begins to write to this carrier. Of a kind of which nothing is known, an annotation does not count as
// a place where records have been. Hidden means that the status may hold records that this release cannot see.
func (p Places) Moved(to Carrier, hidden bool) Places {
	switch {
	case len(p) > 0 && p[0] == to:
		return p
	case to == Annotation && !hidden:
		return Places{Annotation} // There is no room in the status, so each object loses the record there when it gets the new one.
	case len(p) > 0:
		return slices.Concat(Places{to}, p[:min(len(p), maxPlaces-1)])
	case to == Annotation:
		return Places{Annotation, Status}
	default:
		return nil
	}
}

// Former says when a record is read that is not in the preferred carrier.
type Former int

// FormerUnread: never. FormerProgress: if the preferred carrier has none, and only what OnlyProgress leaves. FormerAlone: if the preferred
// carrier has none. FormerNewer: also if it is newer than that in the preferred carrier.
const (
	FormerUnread Former = iota
	FormerProgress
	FormerAlone
	FormerNewer
)

// Former returns when a record in the other carrier is read. Everyone who may annotate an object can write a record into an annotation, so it
// counts only while records move from there to the status. If a release before that could not remove the records in the status, these can be
// older than those in the annotations. Who writes a status may also write the annotations of most kinds, so the newer one counts there.
func (p Places) Former(preferred Carrier) Former {
	places := p.Moved(preferred, false)
	switch {
	case preferred == SeparateAnnotation:
		return FormerUnread
	case preferred == Annotation || len(places) == maxPlaces:
		return FormerNewer
	case len(places) == 0:
		return FormerProgress
	case len(places) == 1:
		return FormerUnread
	default:
		return FormerAlone
	}
}

// OnlyProgress returns the record without what handlers would take as results: those of steps and effects, and that the delete handlers have
// finished. Which handlers have finished, and with what, is left.
func (r Record) OnlyProgress() Record {
	r.Deleted = false
	for id, entry := range r.Handlers {
		if len(entry.Steps) > 0 {
			entry.Steps, entry.Since, entry.Mixed = nil, "", false
			r = r.With(id, entry)
		}
	}
	return r
}

// former reads the record in the other carrier into what was found in the preferred one.
func (s *Stored) former(text, uid string, preferred Carrier, when Former) error {
	if text == "" || when == FormerUnread || when < FormerNewer && s.Record != nil {
		return nil
	}
	r, ours, err := DecodeOf(text, uid)
	if err != nil || !ours {
		return err
	}
	if s.Record != nil && !s.Record.OlderThan(r) {
		return nil
	}
	if s.Partial = when == FormerProgress; s.Partial {
		r = r.OnlyProgress()
	}
	s.From, _ = preferred.Other()
	s.Record, s.Text = &r, text
	return nil
}
