package einmal

import "maps"

// Records is room in a status for what operators remember of an object, by operator identity. Embed it inline in the
// status of your kind:
//
//	type ClaimStatus struct {
//		einmal.Records `json:",inline"`
//		Phase string `json:"phase,omitempty"`
//	}
//
// With it an object's status and its record are written in one request, and the record survives kubectl replace.
// Without it the record is kept in the annotation <identity>/record. Handlers never see it.
//
// +kubebuilder:object:generate=false
type Records struct {
	// Records belongs to the operators that handle this object. Do not change it.
	// +optional
	Records map[string]string `json:"records,omitempty"`
}

// DeepCopyInto copies r into out, as generated deep copies of the types that embed it expect.
func (r *Records) DeepCopyInto(out *Records) { out.Records = maps.Clone(r.Records) }

// DeepCopy copies r; nil stays nil.
func (r *Records) DeepCopy() *Records {
	if r == nil {
		return nil
	}
	out := new(Records)
	r.DeepCopyInto(out)
	return out
}
