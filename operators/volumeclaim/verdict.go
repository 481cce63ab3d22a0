package main

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/einmal-operators/einmal"
	v1 "github.com/einmal-operators/einmal/operators/volumeclaim/api/v1"
)

// The reasons of the condition Used, and of the events.
const (
	neverUsed       = "NeverUsed"
	inUse           = "InUse"
	noLongerUsed    = "NoLongerUsed"
	usedByOthers    = "UsedByOthers"
	expired         = "Expired"
	invalidSelector = "InvalidSelector"
)

// verdict is the decision about a claim: the content of its status, and whether to delete it.
type verdict struct {
	// used, reason and message are the condition Used. Without a reason the claim has no such condition.
	used            metav1.ConditionStatus
	reason, message string
	// firstUsed and unusedSince remember pods that are gone.
	firstUsed, unusedSince *metav1.Time
	// expires is when the claim is deleted unless a pod uses it; nil for never.
	expires *metav1.Time
	delete  bool
}

// severity returns the type of the event.
func (v verdict) severity() einmal.EventType {
	if v.reason == usedByOthers || v.reason == invalidSelector {
		return einmal.EventWarning
	}
	return einmal.EventNormal
}

// judge decides about a claim, given the current pods of its namespace and the claim's status, which remembers past pods. If the selector
// is invalid, the claim is kept.
func judge(claim *v1.EphemeralVolumeClaim, pods []corev1.Pod, now time.Time) verdict {
	if claim.Spec.PodSelector == nil || claim.DeletionTimestamp != nil {
		return verdict{}
	}
	status := claim.Status
	v := verdict{used: metav1.ConditionFalse, firstUsed: status.FirstUsed, unusedSince: status.UnusedSince}
	selector, err := metav1.LabelSelectorAsSelector(claim.Spec.PodSelector)
	if err != nil {
		v.used, v.reason, v.message = metav1.ConditionUnknown, invalidSelector, "the claim is kept: spec.podSelector: "+err.Error()
		return v
	}
	selected, others := users(claim.Name, pods, selector)
	if selected {
		v.used, v.reason, v.message = metav1.ConditionTrue, inUse, "a selected pod uses the volume"
		v.unusedSince = nil
		if v.firstUsed == nil {
			v.firstUsed = wholeSecond(now)
		}
		return v
	}
	if v.firstUsed != nil && v.unusedSince == nil {
		v.unusedSince = wholeSecond(now)
	}
	v.reason, v.message = neverUsed, "no selected pod has used the volume yet"
	if v.firstUsed != nil {
		v.reason, v.message = noLongerUsed, "no selected pod has used the volume since "+clock(v.unusedSince)
	}
	if len(others) > 0 {
		v.reason = usedByOthers
		v.message += fmt.Sprintf("; pod %s uses it, which spec.podSelector does not select, so the claim is kept", others[0])
		return v
	}
	v.expires = expiry(claim, v)
	switch {
	case v.expires == nil:
		v.message += "; the claim is kept"
	case now.Before(v.expires.Time):
		v.message += fmt.Sprintf("; the claim is deleted at %s unless a pod uses it", clock(v.expires))
	default:
		v.reason, v.delete = expired, true
	}
	return v
}

// users reports whether selected pods use the volume, and returns the sorted names of other pods that use it. A pod uses the volume from
// its creation on, even while it is pending, until it is deleted or has ended.
func users(volume string, pods []corev1.Pod, selector labels.Selector) (selected bool, others []string) {
	for _, pod := range pods {
		ended := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
		mounts := slices.ContainsFunc(pod.Spec.Volumes, func(one corev1.Volume) bool {
			return one.PersistentVolumeClaim != nil && one.PersistentVolumeClaim.ClaimName == volume
		})
		switch {
		case ended || !mounts:
		case selector.Matches(labels.Set(pod.Labels)):
			selected = true
		default:
			others = append(others, pod.Name)
		}
	}
	slices.Sort(others)
	return selected, others
}

// expiry returns when an unused claim is deleted.
func expiry(claim *v1.EphemeralVolumeClaim, v verdict) *metav1.Time {
	since, period := &claim.CreationTimestamp, claim.Spec.ExpiryPeriod
	if v.firstUsed != nil {
		since, period = v.unusedSince, claim.Spec.GracePeriod
	}
	if period == nil {
		return nil
	}
	return wholeSecond(since.Add(period.Duration))
}

// wholeSecond rounds a time up to the precision of the API, so that nothing is deleted too early.
func wholeSecond(at time.Time) *metav1.Time {
	whole := metav1.NewTime(at.Add(time.Second - 1).Truncate(time.Second))
	return &whole
}

func clock(at *metav1.Time) string { return at.UTC().Format(time.RFC3339) }
