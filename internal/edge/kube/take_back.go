package kube

import (
	"errors"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/einmal-operators/einmal/internal/core/object"
)

// ErrForeign means that an object exists and does not belong to the owner.
var ErrForeign = errors.New("object exists and does not belong to this owner")

// mark sets the annotation that says for which owner the child is applied. A child with NotController gets none: each of its owners would replace that
// of the others.
func (c Children) mark(child *unstructured.Unstructured) error {
	at := []string{"metadata", "annotations"}
	annotations, _, err := unstructured.NestedStringMap(child.Object, at...)
	if err != nil {
		return fmt.Errorf("add the annotation %s: %w", object.OwnerAnnotation(c.Identity), err)
	}
	delete(annotations, object.OwnerAnnotation(c.Identity)) // A child that Apply has read back has it.
	if !c.Shared {
		mark := object.OwnerMark{Kind: c.ownerKind().String(), Name: c.Owner.Reference.Name, UID: string(c.Owner.Reference.UID)}
		annotations = merged(annotations, map[string]string{object.OwnerAnnotation(c.Identity): mark.String()})
	}
	if annotations == nil {
		return nil
	}
	return unstructured.SetNestedStringMap(child.Object, annotations, at...)
}

// ownerKind returns the kind of the owner. Its version is left out, since a release can change it.
func (c Children) ownerKind() schema.GroupKind {
	return schema.FromAPIVersionAndKind(c.Owner.Reference.APIVersion, c.Owner.Reference.Kind).GroupKind()
}

// Check returns ErrForeign if Apply without Adopt does not change an existing object.
func (c Children) Check(existing metav1.Object) error {
	if c.owns(existing) || c.takesBack(existing) {
		return nil
	}
	kind, name, uid := c.Owner.Reference.Kind, c.Owner.Reference.Name, c.appliedFor(existing)
	switch uid {
	case "":
		return fmt.Errorf("%w: it has no owner reference to %s %s; choose another name or delete it; a handler takes it over only with einmal.Adopt()",
			ErrForeign, kind, name)
	case string(c.Owner.Reference.UID):
		return fmt.Errorf("%w: it was applied for this %s, but has no owner reference to it; choose another name or delete it; "+
			"if it belongs to this %[2]s, such as after a restore from a backup: %s", ErrForeign, kind, c.command(uid))
	}
	return fmt.Errorf("%w: it was applied for the %s %s with the uid %s, but this %[2]s has the uid %[5]s; choose another name or delete it; "+
		"if this %[2]s continues the earlier one, such as after a restore from a backup: %[6]s", ErrForeign, kind, name, uid, c.Owner.Reference.UID, c.command(uid))
}

// command returns the command with which a user says that the owner continues the object with this uid.
func (c Children) command(uid string) string {
	namespace := ""
	if c.Owner.Namespace != "" {
		namespace = " --namespace " + c.Owner.Namespace
	}
	resource := strings.ToLower(c.ownerKind().String()) // kubectl accepts this too.
	version := schema.FromAPIVersionAndKind(c.Owner.Reference.APIVersion, c.Owner.Reference.Kind).Version
	if mapping, err := c.Client.RESTMapper().RESTMapping(c.ownerKind(), version); err == nil {
		resource = mapping.Resource.GroupResource().String()
	}
	return fmt.Sprintf("kubectl annotate --overwrite%s %s %s %s=%s", namespace, resource, c.Owner.Reference.Name, object.FormerUIDAnnotation(c.Identity), uid)
}

// takesBack reports whether a user has said that the owner continues the one for which an existing object was applied.
func (c Children) takesBack(existing metav1.Object) bool {
	if c.FormerUID == "" { // mutant: takes-back-unasked
		return false
	}
	return c.appliedFor(existing) == c.FormerUID // mutant: takes-back-from-any-owner
}

// appliedFor returns the uid of the owner for which an existing object was applied, if that had the kind and the name of this owner. It returns
// "" if the object has a controller.
func (c Children) appliedFor(existing metav1.Object) string {
	mark := object.ReadOwnerMark(existing.GetAnnotations()[object.OwnerAnnotation(c.Identity)])
	same := mark.Kind == c.ownerKind().String() && mark.Name == c.Owner.Reference.Name
	if !same || !isUID(mark.UID) || metav1.GetControllerOfNoCopy(existing) != nil {
		return ""
	}
	return mark.UID
}

// isUID reports whether a text can be a uid. Others may have written it, and it gets into a command that users copy into their shell.
func isUID(text string) bool {
	const longest = 64
	return text != "" && len(text) <= longest && strings.Trim(text, "0123456789abcdefABCDEF-") == ""
}
