package engine

import (
	"fmt"
	"sync"
	"time"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/lru"

	"github.com/einmal-operators/einmal/internal/core/notice"
	"github.com/einmal-operators/einmal/internal/core/object"
)

// The limits of events, which are those of client-go's filter for its older API: for each object a burst, and then one
// in five minutes, of as many objects as are kept in mind. eventsToldApart is how many different events of one object are distinguished.
const (
	eventBurst      = 25
	eventEvery      = 5 * time.Minute
	eventObjects    = 4096
	eventsToldApart = 64
)

// failedReason is the reason of events about handlers that have failed for good.
const failedReason = "HandlerFailed"

// failingReason is the reason of events about handlers that are retried.
const failingReason = "HandlerFailing"

// voice sends the events of an operator.
//
// The recorder counts events that are alike in a series instead of sending each. It takes events of one object, type, reason
// and action for alike whatever they say, and then only the first note is ever seen. So each different note goes with the
// version of the object at which it was said first, which the recorder tells apart too, and of several at one version all
// but the first have a number behind their action.
type voice struct {
	recorder events.EventRecorder

	mu      sync.Mutex
	last    int64
	objects *lru.Cache // *talk by identityOf
}

// talk is what was said of one object lately.
type talk struct {
	mu    sync.Mutex
	limit *rate.Limiter
	known map[notice.Notice]series
}

// series is what the recorder tells apart by, beside the object, the type and the reason.
type series struct{ version, action string }

func newVoice(recorder events.EventRecorder) *voice {
	return &voice{recorder: recorder, objects: lru.New(eventObjects)}
}

// say sends an event about an object. It is false when the object has had too many.
func (v *voice) say(about *corev1.ObjectReference, what notice.Notice) bool {
	t := v.talkOf(identityOf(about))
	t.mu.Lock()
	allowed := t.limit.Allow()
	belongs := t.series(what, about.ResourceVersion)
	t.mu.Unlock()
	about.ResourceVersion, what.Action = belongs.version, belongs.action
	if allowed {
		v.send(about, what)
	}
	return allowed
}

// send sends an event, however many there were.
func (v *voice) send(about *corev1.ObjectReference, what notice.Notice) {
	v.wait()
	v.recorder.Eventf(about, nil, what.Type, what.Reason, what.Action, "%s", what.Note)
}

// identityOf returns what tells an object from others. An object that a handler names need not have a uid.
func identityOf(about *corev1.ObjectReference) corev1.ObjectReference {
	if about.UID != "" {
		return corev1.ObjectReference{UID: about.UID}
	}
	return corev1.ObjectReference{APIVersion: about.APIVersion, Kind: about.Kind, Namespace: about.Namespace, Name: about.Name}
}

func (v *voice) talkOf(identity corev1.ObjectReference) *talk {
	v.mu.Lock()
	defer v.mu.Unlock()
	if known, found := v.objects.Get(identity); found {
		return known.(*talk) // Nothing else is in it.
	}
	made := &talk{limit: rate.NewLimiter(rate.Every(eventEvery), eventBurst), known: map[notice.Notice]series{}}
	v.objects.Add(identity, made)
	return made
}

// series is the one that a notice belongs to.
func (t *talk) series(what notice.Notice, version string) series {
	if known, said := t.known[what]; said {
		return known
	}
	if len(t.known) >= eventsToldApart {
		clear(t.known)
	}
	made := series{version: version, action: what.Action}
	for n := 2; t.taken(what, made); n++ {
		made.action = fmt.Sprintf("%s/%d", what.Action, n)
	}
	t.known[what] = made
	return made
}

func (t *talk) taken(what notice.Notice, wanted series) bool {
	for other, has := range t.known {
		if has == wanted && other.Type == what.Type && other.Reason == what.Reason {
			return true
		}
	}
	return false
}

// wait lets the time move on since the last event. The recorder makes names of the time: two events at the same nanosecond
// would be one, which happens where clocks are coarse and in tests where time stands still.
func (v *voice) wait() {
	for !v.moved() {
		time.Sleep(time.Nanosecond)
	}
}

func (v *voice) moved() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	now := time.Now().UnixNano()
	moved := now > v.last
	v.last = max(v.last, now)
	return moved
}

// reference is how an event refers to an object.
func (k *keeper) reference(body object.Body) *corev1.ObjectReference {
	return &corev1.ObjectReference{
		APIVersion: k.kind.GVK.GroupVersion().String(), Kind: k.kind.GVK.Kind,
		Namespace: object.Text(body, "metadata", "namespace"), Name: object.Text(body, "metadata", "name"),
		UID: types.UID(object.Text(body, "metadata", "uid")), ResourceVersion: version(body),
	}
}

// speechless reports whether no events are sent about objects of the kind, and none by its handlers: an event about an event, or a handler of
// events that sends one, could go on without end.
func (k Kind) speechless() bool { return isEvent(k.GVK) }

func isEvent(gvk schema.GroupVersionKind) bool {
	return gvk.Kind == "Event" && (gvk.Group == "" || gvk.Group == "events.k8s.io")
}

// sayer is what a handler sends events with about the object that it was given.
func (k *keeper) sayer(handlerID string, given object.Body) func(about *corev1.ObjectReference, kind, reason, text string) {
	return func(about *corev1.ObjectReference, kind, reason, text string) {
		if k.kind.speechless() || about != nil && isEvent(about.GroupVersionKind()) {
			return
		}
		if about == nil {
			about = k.reference(given)
		}
		what := notice.New(kind, k.scrub(reason, given), handlerID, k.scrub(text, given))
		if !k.voice.say(about, what) {
			k.meter.Dropped()
			k.log.Debug("event dropped by the rate limit of its object", "handler", handlerID, "event", what.Reason)
		}
	}
}

// warnFailed sends an event about a handler that has failed for good.
func (p *pass) warnFailed(id, reason string) {
	p.warn(failedReason, id, "handler %s failed permanently and runs again only when its fields change: %s", id, reason)
}

// warn sends an event of the framework itself, for people who ask why an object is as it is.
func (p *pass) warn(reason, action, sentence string, args ...any) {
	if !p.kind.speechless() {
		p.voice.send(p.reference(p.body), notice.New(notice.Warning, reason, action, p.scrub(fmt.Sprintf(sentence, args...), p.body)))
	}
}
