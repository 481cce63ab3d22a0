package object

import (
	"encoding/json"
	"strings"
)

const (
	ownerName     = "/applied-for"
	formerUIDName = "/former-uid"
	ownerPrefix   = `{"kind":"`
)

// OwnerAnnotation returns the name of the annotation of a child that says for which owner the operator with this identity has applied it. Its value is
// an OwnerMark.
func OwnerAnnotation(identity string) string { return identity + ownerName }

// FormerUIDAnnotation returns the name of the annotation with which a user tells the operator with this identity that an object continues an
// earlier one of the same kind and name. Its value is the uid of the earlier one.
func FormerUIDAnnotation(identity string) string { return identity + formerUIDName }

// OwnerMark names the owner of a child. It has no namespace: that of a namespaced owner is the namespace of the child, also if a backup of one
// namespace is restored into another.
type OwnerMark struct {
	// Kind is the kind with its group, such as Database.example.com. It is the first field, so that IsOwnerMark recognizes the text.
	Kind string `json:"kind"`
	Name string `json:"name"`
	UID  string `json:"uid"`
}

// String returns the text that is stored in the annotation.
func (m OwnerMark) String() string {
	text, _ := json.Marshal(m) //nolint:errchkjson // Texts can always be encoded.
	return string(text)
}

// ReadOwnerMark reads the text of an annotation. A text that is no OwnerMark gives an empty one.
func ReadOwnerMark(text string) OwnerMark {
	var mark OwnerMark
	if json.Unmarshal([]byte(text), &mark) != nil {
		return OwnerMark{}
	}
	return mark
}

// IsOwnerMark reports whether an annotation is an OwnerMark of an operator of this framework.
func IsOwnerMark(key string, value any) bool {
	text, _ := value.(string)
	return strings.HasSuffix(key, ownerName) && strings.HasPrefix(text, ownerPrefix)
}
