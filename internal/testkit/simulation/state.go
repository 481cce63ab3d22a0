package simulation

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/yaml"

	"github.com/einmal-operators/einmal/internal/core/cause"
	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/record"
)

// Objects are all objects that are there, by kind and name, as text that is the same for two runs that ended alike:
// times, uids and revisions are replaced by words, records by what they say, values of Secrets by their lengths. What
// every cluster has, and what is said about objects (events, leases, watermarks), is left out.
func (w *World) Objects() (map[string]string, error) {
	return w.objects(func(record.Entry) bool { return true })
}

// ObjectsAfterLoss are the objects without what cannot be known any more where records were lost: that a create handler
// was not for the object when it was created.
func (w *World) ObjectsAfterLoss() (map[string]string, error) {
	return w.objects(func(entry record.Entry) bool {
		return entry.Outcome != record.Outside || entry.Cause != string(cause.Create)
	})
}

func (w *World) objects(told func(record.Entry) bool) (map[string]string, error) {
	found, err := w.everything()
	if err != nil {
		return nil, err
	}
	names := make([]string, 0, 2*len(found))
	for _, one := range found {
		names = append(names, string(one.GetUID()), "uid of "+one.GetKind()+" "+one.GetName())
	}
	known := strings.NewReplacer(names...)
	objects := map[string]string{}
	for _, one := range found {
		if w.isLedger(one) {
			continue
		}
		text, err := w.lasting(one, told)
		if err != nil {
			return nil, err
		}
		objects[one.GetKind()+" "+one.GetNamespace()+"/"+one.GetName()] = known.Replace(text)
	}
	return objects, nil
}

// everything lists the objects of every kind but those that only say something.
func (w *World) everything() ([]unstructured.Unstructured, error) {
	_, groups, err := discovery.NewDiscoveryClientForConfigOrDie(w.Server.Config()).ServerGroupsAndResources()
	if err != nil {
		return nil, fmt.Errorf("find out what there is: %w", err)
	}
	slices.SortFunc(groups, func(a, b *metav1.APIResourceList) int { return strings.Compare(a.GroupVersion, b.GroupVersion) })
	var found []unstructured.Unstructured // Of several versions the last one counts.
	for _, group := range groups {
		for _, resource := range group.APIResources {
			if strings.Contains(resource.Name, "/") || !slices.Contains(resource.Verbs, verbList) || said(resource.Kind) {
				continue
			}
			list := &unstructured.UnstructuredList{}
			list.SetAPIVersion(group.GroupVersion)
			list.SetKind(resource.Kind)
			if err := w.User.List(context.Background(), list); err != nil {
				return nil, fmt.Errorf("list %s: %w", resource.Kind, err)
			}
			found = append(found, list.Items...)
		}
	}
	return found, nil
}

// said tells whether objects of the kind only say something about others, or are part of every cluster.
func said(kind string) bool {
	switch kind {
	case "Event", "Lease", "Namespace", "CustomResourceDefinition":
		return true
	}
	return false
}

func (w *World) isLedger(one unstructured.Unstructured) bool {
	return one.GetName() == w.declared.Identity && (one.GetKind() == "ConfigMap" || one.GetKind() == "Secret")
}

// lasting is the text of what is to be the same in another run.
func (w *World) lasting(one unstructured.Unstructured, told func(record.Entry) bool) (string, error) {
	w.keptAnother(one)
	body := one.Object
	for _, field := range []string{"uid", "resourceVersion", "creationTimestamp", "managedFields", "selfLink"} {
		unstructured.RemoveNestedField(body, "metadata", field)
	}
	for _, carrier := range record.Carriers() {
		at := carrier.Path(w.declared.Identity)
		stored := object.Text(body, at...)
		if stored == "" {
			continue
		}
		if err := unstructured.SetNestedField(body, summary(stored, told), at...); err != nil {
			return "", fmt.Errorf("summarize the record of %s: %w", one.GetName(), err)
		}
	}
	if one.GetKind() == "Secret" {
		hide(body)
	}
	sortConditions(body)
	text, err := yaml.Marshal(withoutTimes(body, times()))
	return string(text), err
}

// sortConditions brings conditions into the order of their types: it tells who came first, and nothing else.
func sortConditions(body map[string]any) {
	conditions, _ := object.Get(body, "status", "conditions")
	items, _ := conditions.([]any)
	slices.SortStableFunc(items, func(a, b any) int {
		one, _ := a.(object.Body)
		other, _ := b.(object.Body)
		return strings.Compare(object.Text(one, "type"), object.Text(other, "type"))
	})
}

// hide replaces the values of a Secret by their lengths: they are secret, and may be made by chance.
func hide(body map[string]any) {
	for key, value := range object.Map(body, "data") {
		text, _ := value.(string)
		_ = unstructured.SetNestedField(body, fmt.Sprintf("%d characters", len(text)), "data", key)
	}
}

// summary is what a record says, without what depends on when and how often it was written.
func summary(stored string, told func(record.Entry) bool) string {
	found, err := record.Decode(stored)
	if err != nil {
		return "unreadable: " + err.Error()
	}
	words := []string{"seen by all: " + essenceOf(found, found.Base)}
	for _, id := range slices.Sorted(maps.Keys(found.Handlers)) {
		entry := found.Handlers[id]
		if !told(entry) {
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

// times matches points in time as Kubernetes writes them.
func times() *regexp.Regexp {
	return regexp.MustCompile(`\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)`)
}
