// Package gadget has the kinds that the subjects handle, one for each, so that all of them can run at once: a subject writes the size of the spec into the status, and keeps a finalizer until the object is deleted.
package gadget

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The group of the kinds, the finalizer of the subjects that keep it themselves, and the phase of an object that was seen to.
const (
	Group     = "bench.example.com"
	Version   = "v1"
	Finalizer = Group + "/finalizer"
	Ready     = "Ready"
)

// The kinds of the subjects.
const (
	Bare      = "BareGadget"
	Runtime   = "RuntimeGadget"
	Recorded  = "RecordedGadget"
	Annotated = "AnnotatedGadget"
)

// Resource returns the name of a kind in the paths of the API.
func Resource(kind string) string { return strings.ToLower(kind) + "s" }

// Workers is how many objects a subject handles at the same time.
const Workers = 16

// Spec is what is wanted.
type Spec struct {
	Size int64 `json:"size"`
	// Text stands for the other fields that an object has.
	Text string `json:"text,omitempty"`
}

// Status is what was reported.
type Status struct {
	Size  int64  `json:"size,omitempty"`
	Phase string `json:"phase,omitempty"`
}

// Gadget is an object of the kind.
type Gadget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   Spec   `json:"spec,omitempty"`
	Status Status `json:"status,omitempty"`
}

// DeepCopy returns a copy.
func (g *Gadget) DeepCopy() *Gadget {
	copied := *g
	g.ObjectMeta.DeepCopyInto(&copied.ObjectMeta)
	return &copied
}

// DeepCopyObject returns a copy.
func (g *Gadget) DeepCopyObject() runtime.Object { return g.DeepCopy() }

// List is a list of Gadgets.
type List struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Gadget `json:"items"`
}

// DeepCopyObject returns a copy.
func (l *List) DeepCopyObject() runtime.Object {
	copied := &List{TypeMeta: l.TypeMeta, ListMeta: *l.ListMeta.DeepCopy()}
	for i := range l.Items {
		copied.Items = append(copied.Items, *l.Items[i].DeepCopy())
	}
	return copied
}

// GroupVersion is that of the kind.
func GroupVersion() schema.GroupVersion { return schema.GroupVersion{Group: Group, Version: Version} }

// AddToScheme adds a kind to a scheme.
func AddToScheme(scheme *runtime.Scheme, kind string) error {
	scheme.AddKnownTypeWithName(GroupVersion().WithKind(kind), &Gadget{})
	scheme.AddKnownTypeWithName(GroupVersion().WithKind(kind+"List"), &List{})
	metav1.AddToGroupVersion(scheme, GroupVersion())
	return nil
}
