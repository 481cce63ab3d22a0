package simulation

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"sync"

	"github.com/einmal-operators/einmal/internal/declaration"
)

// history is what the processes of an operator did in one run.
type history struct {
	mu     sync.Mutex
	calls  []declaration.Attempt
	writes []Request
	values map[string][]digest
	// effects counts the successful calls of effects that are not idempotent.
	effects map[string]int
	// callers are the attempts that may have called an effect, by the name of the effect. An attempt has no number and no outcome here. The zero
	// value stands for a caller that is no attempt of a handler, such as a daemon.
	callers map[string][]declaration.Attempt
	// rights are those that were used, refused the requests for which one was missing.
	rights  map[string]bool
	refused []string
	// records are the records of the operator, by place, in the order in which it wrote them.
	records map[string][]string
	// others is what another writer has written, by object and field.
	others map[string]string
}

// digest stands for a value: values may be secret, and are neither kept nor shown.
type digest [sha256.Size]byte

func (h *history) called(attempt declaration.Attempt) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.calls = append(h.calls, attempt)
}

// expect notes what another writer has written; expected returns it, "" for nothing.
func (h *history) expect(where, text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.others == nil {
		h.others = map[string]string{}
	}
	h.others[where] = text
}

func (h *history) expected(where string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.others[where]
}

// wrote notes a write and, of a Secret, which values it holds now.
func (h *history) wrote(request Request, answer []byte) {
	h.mu.Lock()
	h.writes = append(h.writes, request)
	h.mu.Unlock()
	if request.Resource != "secrets" || request.Verb == verbDelete || request.Verb == verbDeleteAll {
		return
	}
	var secret struct{ Data map[string][]byte }
	if json.Unmarshal(answer, &secret) != nil {
		return
	}
	for _, key := range slices.Sorted(maps.Keys(secret.Data)) {
		h.set("Secret "+request.Object+", "+key, string(secret.Data[key]))
	}
}

// effect counts an effect that has succeeded.
func (h *history) effect(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.effects == nil {
		h.effects = map[string]int{}
	}
	h.effects[name]++
}

// noteCallers notes attempts that may have called an effect.
func (h *history) noteCallers(name string, attempts []declaration.Attempt) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.callers == nil {
		h.callers = map[string][]declaration.Attempt{}
	}
	if len(attempts) == 0 {
		attempts = []declaration.Attempt{{}}
	}
	for _, attempt := range attempts {
		if !slices.Contains(h.callers[name], attempt) {
			h.callers[name] = append(h.callers[name], attempt)
		}
	}
}

// set notes that something has this value now.
func (h *history) set(name string, value any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.values == nil {
		h.values = map[string][]digest{}
	}
	text, err := json.Marshal(value)
	if err != nil {
		text = fmt.Append(nil, value)
	}
	now := digest(sha256.Sum256(text))
	if known := h.values[name]; len(known) == 0 || known[len(known)-1] != now {
		h.values[name] = append(known, now)
	}
}

// Calls are all attempts so far, in order.
func (w *World) Calls() []declaration.Attempt {
	w.history.mu.Lock()
	defer w.history.mu.Unlock()
	return slices.Clone(w.history.calls)
}

// Handlers are the ids of the operator's handlers.
func (w *World) Handlers() []string { return w.declared.Handlers }

// Writes are all writes of the operator that the API server accepted so far, in order.
func (w *World) Writes() []Request {
	w.history.mu.Lock()
	defer w.history.mu.Unlock()
	return slices.Clone(w.history.writes)
}

// WritesToObjects are the writes without those of the ConfigMap in which the operator stores what it knows of each kind. It writes that in the
// background.
func (w *World) WritesToObjects() []Request {
	return slices.DeleteFunc(w.Writes(), func(made Request) bool {
		return made.Resource == "configmaps" && made.Handler == "" && path.Base(made.Object) == w.declared.Identity
	})
}

// Effects returns how often each effect succeeded that is not idempotent, by name.
func (w *World) Effects() map[string]int {
	w.history.mu.Lock()
	defer w.history.mu.Unlock()
	return maps.Clone(w.history.effects)
}

// Callers returns the attempts that may have called an effect, by the name of the effect, without their numbers and outcomes. The zero value stands
// for a caller that is no attempt of a handler, such as a daemon.
func (w *World) Callers() map[string][]declaration.Attempt {
	w.history.mu.Lock()
	defer w.history.mu.Unlock()
	return maps.Clone(w.history.callers)
}

// Values returns how many values each idempotent effect, and each key of each Secret that the operator wrote, has had one
// after the other.
func (w *World) Values() map[string]int {
	w.history.mu.Lock()
	defer w.history.mu.Unlock()
	counts := map[string]int{}
	for name, values := range w.history.values {
		counts[name] = len(values)
	}
	return counts
}
