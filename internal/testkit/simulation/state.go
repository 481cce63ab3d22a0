package simulation

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/einmal-operators/einmal/internal/core/cause"
	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/record"
)

// Objects are all objects that exist, by kind, group and name, as text that is the same for two runs that ended alike: times, uids, revisions
// and generated names are replaced by words, records by what they say, values of Secrets by their lengths. NotCompared names what is left out.
func (w *World) Objects() (map[string]string, error) {
	return w.objects(view{compares: func(record.Entry) bool { return true }})
}

// ObjectsAfterLoss are the objects without what cannot be known any more where records were lost: that a create handler
// did not match the object when it was created. They also lack the conditions of the given types.
func (w *World) ObjectsAfterLoss(without ...string) (map[string]string, error) {
	return w.objects(view{without: without, compares: func(entry record.Entry) bool {
		return entry.Outcome != record.Outside || entry.Cause != string(cause.Create)
	}})
}

// view is what of objects is compared.
type view struct {
	// compares reports whether an entry of a record is compared.
	compares func(record.Entry) bool
	// without are the types of conditions that are not.
	without []string
}

// objects are all objects, with what of them is compared.
func (w *World) objects(v view) (map[string]string, error) {
	found := w.everything()
	known := strings.NewReplacer(aliases(found)...)
	shared := map[string]string{}
	objects := map[string]string{}
	for _, one := range found {
		if w.isNotCompared(one) {
			continue
		}
		name := nameOf(one)
		text, err := w.lasting(one, v, shared)
		if err != nil {
			return nil, err
		}
		objects[known.Replace(name)] = known.Replace(text)
	}
	return objects, nil
}

// nameOf is the kind, the group if there is one, and the name of an object.
func nameOf(one unstructured.Unstructured) string {
	return one.GroupVersionKind().GroupKind().String() + " " + one.GetNamespace() + "/" + one.GetName()
}

// aliases are what stands for uids and generated names, in pairs.
func aliases(found []unstructured.Unstructured) []string {
	names := make([]string, 0, 4*len(found))
	generated := map[string]int{}
	for _, one := range byAge(found) {
		name, begins := one.GetName(), one.GetGenerateName()
		if begins != "" && strings.HasPrefix(name, begins) {
			generated[nameOf(one)[:len(nameOf(one))-len(name)]+begins]++
			alias := fmt.Sprintf("%s<generated %d>", begins, generated[nameOf(one)[:len(nameOf(one))-len(name)]+begins])
			names = append(names, name, alias)
			name = alias
		}
		names = append(names, string(one.GetUID()), "uid of "+one.GetKind()+" "+name)
	}
	return names
}

// byAge orders objects by their creation.
func byAge(found []unstructured.Unstructured) []unstructured.Unstructured {
	ordered := slices.Clone(found)
	slices.SortStableFunc(ordered, func(a, b unstructured.Unstructured) int {
		return a.GetCreationTimestamp().Compare(b.GetCreationTimestamp().Time)
	})
	return ordered
}

// NotCompared lists what Objects does not compare.
func (w *World) NotCompared() []string {
	return []string{
		"Events",
		fmt.Sprintf("the ConfigMap, Secret and Lease of the operator, each named %s", w.declared.Identity),
		"uid, resourceVersion, creationTimestamp, managedFields and selfLink of objects; what is random in generated names",
		"generation and observedGeneration of children that a fault has deleted or replaced",
		"times, but those that the option CompareTime names",
		"values in Secrets that differ between two runs without faults: of these, lengths and equal values are compared",
	}
}

// everything returns the objects of every kind but Events.
func (w *World) everything() []unstructured.Unstructured {
	return slices.DeleteFunc(w.Server.Objects(), func(one unstructured.Unstructured) bool {
		return isEvent(one.GroupVersionKind().GroupKind())
	})
}

// isEvent reports whether the objects of the kind are Events, which only say something about others.
func isEvent(kind schema.GroupKind) bool {
	return kind.Kind == "Event" && (kind.Group == "" || kind.Group == "events.k8s.io")
}

// isNotCompared reports whether an object is not compared: the operator's own state.
func (w *World) isNotCompared(one unstructured.Unstructured) bool {
	kind := one.GroupVersionKind().GroupKind().String()
	return one.GetName() == w.declared.Identity && (kind == "ConfigMap" || kind == "Secret" || kind == "Lease.coordination.k8s.io")
}

// lasting is the text of what is to be the same in another run.
func (w *World) lasting(one unstructured.Unstructured, v view, shared map[string]string) (string, error) {
	before, known := w.beginning[one.GetUID()]
	if known && before.version == one.GetResourceVersion() {
		return Unchanged, nil
	}
	w.keptAnother(one)
	w.keptLabel(one)
	w.keptAnnotation(one)
	w.withoutEdit(one)
	body := one.Object
	for _, field := range []string{"uid", "resourceVersion", "creationTimestamp", "managedFields", "selfLink"} {
		unstructured.RemoveNestedField(body, "metadata", field)
	}
	if known && sameContent(before.object, one) || w.isNamespaceContent(one) {
		return Unchanged, nil
	}
	for _, carrier := range record.Carriers() {
		at := carrier.Path(w.declared.Identity)
		stored := object.Text(body, at...)
		if stored == "" {
			continue
		}
		if err := unstructured.SetNestedField(body, summary(stored, v.compares), at...); err != nil {
			return "", fmt.Errorf("summarize the record of %s: %w", one.GetName(), err)
		}
	}
	if isSecret(one) {
		hide(one, shared)
	}
	if err := v.arrangeConditions(body); err != nil {
		return "", fmt.Errorf("compare the conditions of %s: %w", one.GetName(), err)
	}
	text, err := yaml.Marshal(withoutTimes(body, times()))
	return string(text), err
}

// arrangeConditions removes conditions that are not compared, and brings the others into the order of their types: it tells who came first, and
// nothing else.
func (v view) arrangeConditions(body map[string]any) error {
	conditions, _ := object.Get(body, "status", "conditions")
	items, _ := conditions.([]any)
	typeOf := func(item any) string {
		condition, _ := item.(object.Body)
		return object.Text(condition, "type")
	}
	kept := slices.DeleteFunc(items, func(item any) bool { return slices.Contains(v.without, typeOf(item)) })
	slices.SortStableFunc(kept, func(a, b any) int { return strings.Compare(typeOf(a), typeOf(b)) })
	if len(kept) == len(items) {
		return nil
	}
	if len(kept) == 0 {
		unstructured.RemoveNestedField(body, "status", "conditions")
		return nil
	}
	return unstructured.SetNestedSlice(body, kept, "status", "conditions")
}

// isSecret reports whether an object is a Secret of Kubernetes.
func isSecret(one unstructured.Unstructured) bool {
	return one.GroupVersionKind().GroupKind() == schema.GroupKind{Kind: "Secret"}
}

// hide replaces the values of a Secret by their lengths, since they are secret and may be random. Where another Secret holds the same value,
// it says so; shared holds where each value was seen first.
func hide(one unstructured.Unstructured, shared map[string]string) {
	data := object.Map(one.Object, "data")
	for _, key := range slices.Sorted(maps.Keys(data)) {
		text, _ := data[key].(string)
		says := fmt.Sprintf("%d characters", len(text))
		place := nameOf(one) + ", " + key
		if first, seen := shared[text]; len(untimed(text)) == 0 {
			says = "a time"
		} else if seen {
			says += ", the same as " + first
		} else {
			shared[text] = place
		}
		_ = unstructured.SetNestedField(one.Object, says, "data", key)
	}
}

// SecretValues returns a keyed digest of each value of each Secret, without the times in it, by "Secret NAMESPACE/NAME, KEY".
func (w *World) SecretValues() (map[string]string, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "Secret"})
	if err := w.User.List(context.Background(), list); err != nil {
		return nil, fmt.Errorf("list Secrets: %w", err)
	}
	digests := map[string]string{}
	for _, one := range list.Items {
		if w.isNotCompared(one) {
			continue
		}
		for key, value := range object.Map(one.Object, "data") {
			keyed := hmac.New(sha256.New, w.setup.DigestKey)
			keyed.Write(untimed(value))
			digests[nameOf(one)+", "+key] = hex.EncodeToString(keyed.Sum(nil))
		}
	}
	return digests, nil
}

// untimed is a value of a Secret without the times in it.
func untimed(value any) []byte {
	encoded, _ := value.(string)
	text, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return []byte(encoded)
	}
	return times().ReplaceAll(text, nil)
}

// summary is what a record says, without what depends on when and how often it was written.
func summary(stored string, compared func(record.Entry) bool) string {
	found, err := record.Decode(stored)
	if err != nil {
		return "unreadable: " + err.Error()
	}
	words := []string{"seen by all: " + essenceOf(found, found.Base)}
	for _, id := range slices.Sorted(maps.Keys(found.Handlers)) {
		entry := found.Handlers[id]
		if !compared(entry) {
			continue
		}
		words = append(words, fmt.Sprintf("%s: %s %s, has seen %s", id, entry.Cause, entry.Outcome, essenceOf(found, entry.Seen)))
		for _, step := range slices.Sorted(maps.Keys(entry.Steps)) {
			words = append(words, strings.TrimSpace(fmt.Sprintf("step %s done %s", step, entry.Steps[step].Result)))
		}
	}
	if found.Deleted {
		words = append(words, "deleted")
	}
	return strings.Join(words, "; ")
}

func essenceOf(found record.Record, digest string) string {
	kept, known := found.Essence(digest)
	switch {
	case digest == "":
		return "nothing"
	case known && kept.Body == nil:
		return "digests" // Those of Secrets have a key of their own in each run.
	case !known:
		return digest
	}
	text, err := json.Marshal(kept.Body)
	if err != nil {
		return digest
	}
	return string(text)
}

// withoutTimes replaces every time by a word.
func withoutTimes(value any, times *regexp.Regexp) any {
	switch value := value.(type) {
	case map[string]any:
		kept := map[string]any{}
		for key, item := range value {
			kept[key] = withoutTimes(item, times)
		}
		return kept
	case []any:
		kept := make([]any, len(value))
		for i, item := range value {
			kept[i] = withoutTimes(item, times)
		}
		return kept
	case string:
		return times.ReplaceAllString(value, "<time>")
	default:
		return value
	}
}
