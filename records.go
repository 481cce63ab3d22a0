package einmal

import "maps"

// Records is a field for the status of a kind, in which operators store their records of an object, by operator
// identity. Embed it inline:
//
//	type ClaimStatus struct {
//		einmal.Records `json:",inline"`
//		Phase string `json:"phase,omitempty"`
//	}
//
// With it, the status of an object and its record are written in one request, and the record survives kubectl replace.
// Without it, the record is stored in the annotation <identity>/record. Handlers never see the record.
//
// +kubebuilder:object:generate=false
type Records struct {
	// Records belongs to the operators that handle this object. Do not change it.
	// +optional
	Records map[string]string `json:"records,omitempty"`
}

// DeepCopyInto copies r into out. Generated deep copies of types that embed Records call it.
func (r *Records) DeepCopyInto(out *Records) { out.Records = maps.Clone(r.Records) }

// DeepCopy returns a copy of r, nil for nil.
func (r *Records) DeepCopy() *Records {
	if r == nil {
		return nil
	}
	out := new(Records)
	r.DeepCopyInto(out)
	return out
}
