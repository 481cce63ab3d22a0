package object

import "strings"

// Annotations that never belong to the essence, because tools keep their books in them.
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

// RecreateAnnotation is the annotation by which a person asks the operator with this identity to run the create
// handlers once more, once per value.
func RecreateAnnotation(identity string) string { return identity + recreateName }

// ReleaseAll is the value of the release annotation that stands for all delete handlers.
const ReleaseAll = "*"

// ReleaseAnnotation is the annotation by which a person asks the operator with this identity to give up a delete handler
// that fails: its value is the id of the handler, or ReleaseAll.
func ReleaseAnnotation(identity string) string { return identity + releaseName }

// EffectAnnotation is the annotation by which a person tells the operator with this identity what came of the effect with
// this token: its value is that it is to be called again, that it was made, or what it gave.
func EffectAnnotation(identity, token string) string { return identity + effectName + token }

// EffectWords are the annotations of an object by which people have told what came of effects, by token.
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

// RecordAnnotation is the annotation in which the operator with this identity keeps its record.
func RecordAnnotation(identity string) string { return identity + recordName }

// Essence is the part of an object whose change means something: every top-level stanza except apiVersion, kind,
// metadata and status, and of the metadata labels and annotations, without the bookkeeping of kubectl and of
// operators (Kopf §2.5), of which identity is the one that reads. Fields of the status come in only when named by
// statusFields.
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

// meaningful leaves out bookkeeping: kubectl's, Kopf's, and records of any operator of this framework. The annotation
// of our own record is always bookkeeping: other text in its place is not a change of the object.
func meaningful(annotations Body, identity string) Body {
	kept := make(Body, len(annotations))
	for key, value := range annotations {
		ours := key == RecordAnnotation(identity) || key == RecreateAnnotation(identity) || key == ReleaseAnnotation(identity) || strings.HasPrefix(key, identity+effectName)
		if !ours && !isBookkeeping(key, value, annotations) {
			kept[key] = value
		}
	}
	return kept
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
	return IsRecord(key, value)
}

// IsRecord tells whether an annotation is the record of some operator of this framework.
func IsRecord(key string, value any) bool {
	text, _ := value.(string)
	return MayBeRecord(key) && strings.HasPrefix(text, recordPrefix)
}

// MayBeRecord tells whether an annotation of this name can be the record of some operator of this framework.
func MayBeRecord(key string) bool { return strings.HasSuffix(key, recordName) }

// View is what a handler sees of an essence: the named fields, or all of it but the status when it names none.
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

// Frame is a view together with the maps that its fields would be in, where these are there and the fields are not: a
// field that is filled in later then changes nothing but itself.
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
