package object

import "strings"

// Annotations that never belong to the essence, because tools keep their state in them.
const (
	lastApplied  = "kubectl.kubernetes.io/last-applied-configuration"
	kopfDomain   = "kopf.zalando.org"
	kopfMarker   = "/kopf-managed"
	recordName   = "/record"
	recreateName = "/recreate"
	releaseName  = "/release"
	effectName   = "/effect."
	recordPrefix = `{"v":`
)

// RecreateAnnotation returns the name of the annotation that requests another run of the create handlers from the operator
// with this identity. Each value takes effect once.
func RecreateAnnotation(identity string) string { return identity + recreateName }

// ReleaseAll is the value of the release annotation that means all delete handlers.
const ReleaseAll = "*"

// ReleaseAnnotation returns the name of the annotation that tells the operator with this identity to give up a failing delete
// handler. Its value is the id of the handler, or ReleaseAll.
func ReleaseAnnotation(identity string) string { return identity + releaseName }

// EffectAnnotation returns the name of the annotation that answers the operator with this identity what the outcome of the effect
// with this token was. Its value says to call it again, that it was made, or gives its result.
func EffectAnnotation(identity, token string) string { return identity + effectName + token }

// EffectWords returns the values of an object's effect annotations, by token.
func EffectWords(body Body, identity string) map[string]string {
	var words map[string]string
	for key, value := range Map(body, "metadata", "annotations") {
		token, is := strings.CutPrefix(key, identity+effectName)
		text, isText := value.(string)
		if !is || !isText {
			continue
		}
		if words == nil {
			words = map[string]string{}
		}
		words[token] = text
	}
	return words
}

// RecordAnnotation returns the name of the annotation in which the operator with this identity keeps its record.
func RecordAnnotation(identity string) string { return identity + recordName }

// Essence returns the part of an object whose changes matter to handlers: every top-level field except apiVersion, kind,
// metadata and status, and from the metadata the labels and annotations. Annotations in which kubectl and operators keep their
// state are left out, and so are those of the operator with this identity. Status fields are included only if statusFields
// names them.
func Essence(body Body, identity string, statusFields []Path) Body {
	essence := make(Body, len(body))
	for key, value := range body {
		switch key {
		case "apiVersion", "kind", "metadata", "status":
		default:
			essence[key] = value
		}
	}
	metadata := Body{}
	if labels := Map(body, "metadata", "labels"); len(labels) > 0 {
		metadata["labels"] = labels
	}
	if annotations := meaningful(Map(body, "metadata", "annotations"), identity); len(annotations) > 0 {
		metadata["annotations"] = annotations
	}
	if len(metadata) > 0 {
		essence["metadata"] = metadata
	}
	for _, path := range statusFields {
		if value, found := Get(body, path...); found {
			essence = With(essence, path, value)
		}
	}
	return essence
}

// meaningful returns the annotations without the state of kubectl, Kopf, and any operator of this framework. The annotations
// of this operator are left out whatever their text: a foreign value in one of them is not a change of the object.
func meaningful(annotations Body, identity string) Body {
	kept := make(Body, len(annotations))
	for key, value := range annotations {
		if !isOurs(key, identity) && !isBookkeeping(key, value, annotations) {
			kept[key] = value
		}
	}
	return kept
}

// isOurs reports whether an annotation belongs to the operator with this identity. FormerUIDAnnotation does not: a user who sets it edits the object, so
// that a handler that has failed is called again at once.
func isOurs(key, identity string) bool {
	switch key {
	case RecordAnnotation(identity), RecreateAnnotation(identity), ReleaseAnnotation(identity), OwnerAnnotation(identity):
		return true
	}
	return strings.HasPrefix(key, identity+effectName)
}

func isBookkeeping(key string, value any, all Body) bool {
	if key == lastApplied {
		return true
	}
	prefix, _, hasPrefix := strings.Cut(key, "/")
	if !hasPrefix {
		return false
	}
	if prefix == kopfDomain || strings.HasSuffix(prefix, "."+kopfDomain) {
		return true
	}
	if _, marked := all[prefix+kopfMarker]; marked {
		return true
	}
	return IsRecord(key, value) || IsOwnerMark(key, value)
}

// IsRecord reports whether an annotation is a record of an operator of this framework.
func IsRecord(key string, value any) bool {
	text, _ := value.(string)
	return MayBeRecord(key) && strings.HasPrefix(text, recordPrefix)
}

// MayBeRecord reports whether an annotation with this name can be a record of an operator of this framework.
func MayBeRecord(key string) bool { return strings.HasSuffix(key, recordName) }

// View returns what a handler sees of an essence: the named fields or, if there are none, everything except the status.
func View(essence Body, fields []Path) Body {
	if len(fields) == 0 {
		return Without(essence, Path{"status"})
	}
	view := Body{}
	for _, path := range fields {
		if value, found := Get(essence, path...); found {
			view = With(view, path, value)
		}
	}
	return view
}

// Frame returns a view that also has empty maps where a parent of a named field exists and the field does not. A field that
// is filled in later then changes only itself.
func Frame(essence Body, fields []Path) Body {
	frame := View(essence, fields)
	for _, path := range fields {
		for i := 1; i < len(path); i++ {
			if Map(essence, path[:i]...) == nil {
				break
			}
			if _, found := Get(frame, path[:i]...); !found {
				frame = With(frame, path[:i], Body{})
			}
		}
	}
	return frame
}
