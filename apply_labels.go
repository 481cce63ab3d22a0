package einmal

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/edge/kube"
)

// labelSettings are the labels of the owner that a child gets.
type labelSettings struct {
	// keys are label keys, and beginnings of keys that end with an asterisk.
	keys     []string
	nested   []object.Path
	tracking bool
}

// CopyLabels copies labels of the owner to the child, where it has none of the same name. Each key is the key of a label, such as team, or its
// beginning and an asterisk: CopyLabels("example.com/*") copies all labels whose keys begin with example.com/, and CopyLabels("*") all labels.
// Labels that the owner loses are removed from the child too.
//
// No pattern matches a tracking label: see IsTrackingLabel. A key that names one is an error, unless CopyTrackingLabels is given.
func CopyLabels(keys ...string) ApplyOption {
	return option{name: "CopyLabels", apply: func(settings *applySettings) error {
		if len(keys) == 0 {
			return errors.New("option CopyLabels: must have at least one key, such as team or example.com/*, got none")
		}
		for _, key := range keys {
			tried := key
			if beginning, isPattern := strings.CutSuffix(key, "*"); isPattern {
				tried = beginning + "x" // Any key that the pattern matches.
			}
			if problems := validation.IsQualifiedName(tried); len(problems) > 0 {
				return fmt.Errorf("option CopyLabels: %q is not a label key, nor the beginning of one followed by one asterisk; "+
					"give keys such as team or example.com/*: %s", key, strings.Join(problems, "; "))
			}
		}
		settings.labels.keys = append(settings.labels.keys, keys...)
		return nil
	}}
}

// NestedLabels copies the labels of the owner into objects within the child, where these have none of the same name:
// NestedLabels("spec.template") into spec.template.metadata.labels, for the pods of a Deployment. The child must have an object at each path.
// Without CopyTrackingLabels, NestedLabels copies a tracking label only if the selector of the child names it: see IsTrackingLabel.
//
// A later change of the owner's labels changes the pod template, which replaces the pods of a Deployment. In an existing child, copied labels stay as
// they are if the selector names them, or if the template is immutable, as that of a Job.
func NestedLabels(paths ...string) ApplyOption {
	return option{name: "NestedLabels", apply: func(settings *applySettings) error {
		if len(paths) == 0 {
			return errors.New("option NestedLabels: must have at least one path, such as spec.template, got none")
		}
		for _, text := range paths {
			path, err := object.ParsePath(text)
			if err != nil {
				return fmt.Errorf("option NestedLabels: %w", err)
			}
			if path[0] == "metadata" || path[0] == statusField {
				return fmt.Errorf("option NestedLabels: paths must be below the spec or another field of the child's own, got %s", text)
			}
			settings.labels.nested = append(settings.labels.nested, path)
		}
		return nil
	}}
}

// CopyTrackingLabels lets CopyLabels and NestedLabels copy tracking labels too: see IsTrackingLabel. The tool that has set such a label on the
// owner can then delete the child, which it does not find among its own manifests.
func CopyTrackingLabels() ApplyOption {
	return option{name: "CopyTrackingLabels", apply: func(settings *applySettings) error {
		settings.labels.tracking = true
		return nil
	}}
}

// IsTrackingLabel reports whether a label has a key by which tools find the objects that they manage. These keys are app.kubernetes.io/instance,
// app.kubernetes.io/managed-by, and all that begin with applyset.kubernetes.io/, argocd.argoproj.io/, kustomize.toolkit.fluxcd.io/ or
// helm.toolkit.fluxcd.io/. For example, kubectl apply --prune --applyset deletes each object that has the label of its set and is not among the
// applied manifests. Apply does not copy such labels.
func IsTrackingLabel(key string) bool {
	switch key {
	case "app.kubernetes.io/instance", "app.kubernetes.io/managed-by":
		return true
	}
	prefix, _, _ := strings.Cut(key, "/")
	switch prefix + "/" {
	case "applyset.kubernetes.io/", "argocd.argoproj.io/", "kustomize.toolkit.fluxcd.io/", "helm.toolkit.fluxcd.io/":
		return true
	}
	return false
}

// check returns an error if a key names tracking labels, or if CopyTrackingLabels has nothing to copy.
func (s labelSettings) check() error {
	if s.tracking {
		if len(s.keys) == 0 && len(s.nested) == 0 {
			return errors.New("option CopyTrackingLabels: copies nothing by itself; add einmal.CopyLabels or einmal.NestedLabels, or remove it")
		}
		return nil
	}
	if at := slices.IndexFunc(s.keys, IsTrackingLabel); at >= 0 {
		return fmt.Errorf("option CopyLabels: by the label %s a tool finds the objects that it manages, and it can delete the child; "+
			"leave out the key, or add einmal.CopyTrackingLabels()", s.keys[at])
	}
	return nil
}

// checkNested returns an error if the child has no object where labels are to be copied into.
func (s labelSettings) checkNested(kind string, child object.Body) error {
	for _, path := range s.nested {
		found, _ := object.Get(child, path...)
		if _, is := found.(object.Body); !is {
			return fmt.Errorf("option NestedLabels: %s has no object at %s; name a field that has metadata, such as spec.template", kind, path)
		}
	}
	return nil
}

// of returns the labels of an owner that a child gets.
func (s labelSettings) of(owner object.Body) kube.Labels {
	labels := kube.Labels{Child: map[string]string{}, Paths: s.nested}
	if len(s.nested) > 0 {
		labels.Nested, labels.Selected = map[string]string{}, map[string]string{}
	}
	for key, value := range object.Map(owner, "metadata", "labels") {
		text, isText := value.(string)
		if !isText {
			continue
		}
		tracking := IsTrackingLabel(key) && !s.tracking // mutant: tracking-labels-copied
		if !tracking && s.copies(key) {
			labels.Child[key] = text
		}
		switch {
		case len(s.nested) == 0:
		case tracking:
			labels.Selected[key] = text
		default:
			labels.Nested[key] = text
		}
	}
	return labels
}

// copies reports whether CopyLabels names a key.
func (s labelSettings) copies(key string) bool {
	return slices.ContainsFunc(s.keys, func(named string) bool {
		beginning, isPattern := strings.CutSuffix(named, "*")
		return named == key || isPattern && strings.HasPrefix(key, beginning)
	})
}
