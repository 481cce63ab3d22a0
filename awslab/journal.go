package awslab

import (
	"errors"
	"net/http"
	"slices"
)

// CodeRefused is the code in the journal of a call whose connection was cut before anything was done.
const CodeRefused = "refused"

// Call is a call in the journal. It never holds a value, a password or an access string.
type Call struct {
	// Service is "ssm" or "elasticache".
	Service string
	// Action is as AWS names it, such as PutParameter.
	Action string
	// Resource is what it was about: the name of a parameter, the id of a user or of a group; several are joined by commas.
	Resource string
	// Write tells that it changes something when it succeeds.
	Write bool
	// Code is that of the error that came of it, "" for success. An answer that was lost has the code that it would have told.
	Code string
}

// Journal returns the calls since the beginning, or since Forget: each attempt of the SDK is one.
func (l *Lab) Journal() []Call {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return slices.Clone(l.journal)
}

// Forget begins the journal anew.
func (l *Lab) Forget() {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.journal = nil
}

// Writes counts the calls in the journal that would change something, whatever came of them.
func (l *Lab) Writes() int {
	return l.count(func(c Call) bool { return c.Write })
}

// Count counts the calls of an action in the journal, whatever came of them.
func (l *Lab) Count(action string) int {
	return l.count(func(c Call) bool { return c.Action == action })
}

func (l *Lab) count(counts func(Call) bool) int {
	found := 0
	for _, made := range l.Journal() {
		if counts(made) {
			found++
		}
	}
	return found
}

func (l *Lab) note(asked call, code string) {
	l.journal = append(l.journal, Call{
		Service: asked.service(), Action: asked.action(), Resource: asked.resource(), Write: isWrite(asked.action()), Code: code,
	})
}

// Fault is something that goes wrong with a call. Of its kinds, the first that is set counts.
type Fault struct {
	// Resource is what the call must be about, "" for anything.
	Resource string
	// Refused: the connection is cut, and nothing was done.
	Refused bool
	// Lost: what was asked is done, and the connection is cut instead of an answer.
	Lost bool
	// Code is answered as an error, such as ThrottlingException, and nothing is done. Codes of ElastiCache lack the "Fault" at the end
	// that the types of the SDK have.
	Code string
	// Message is what the error says; Status is its HTTP status, 400 if zero.
	Message string
	Status  int
}

// planned is a fault that waits for its call.
type planned struct {
	action string
	fault  Fault
}

// Fail plans faults for the next calls of an action, "" for any: each fault is for one call, in this order. slices.Repeat makes
// one last.
func (l *Lab) Fail(action string, faults ...Fault) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	for _, fault := range faults {
		l.faults = append(l.faults, planned{action, fault})
	}
}

// Heal forgets the faults that are still planned.
func (l *Lab) Heal() {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.faults = nil
}

// Refuse makes the Lab cut every connection without doing anything, or end that.
func (l *Lab) Refuse(all bool) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.refuses = all
}

// next takes the fault that is planned for a call.
func (l *Lab) next(asked call) (Fault, bool) {
	at := slices.IndexFunc(l.faults, func(p planned) bool {
		return (p.action == "" || p.action == asked.action()) && (p.fault.Resource == "" || p.fault.Resource == asked.resource())
	})
	if at < 0 || l.refuses {
		return Fault{}, false
	}
	found := l.faults[at].fault
	l.faults = slices.Delete(l.faults, at, at+1)
	return found, true
}

// failure is an error that a service answers.
type failure struct {
	Code, Message string
	Status        int
}

func (f *failure) Error() string { return f.Code + ": " + f.Message }

func (f Fault) failure() error {
	made := refuse(f.Code, f.Message)
	if f.Status != 0 {
		made.Status = f.Status
	}
	return made
}

func refuse(code, message string) *failure {
	return &failure{Code: code, Message: message, Status: http.StatusBadRequest}
}

func codeOf(err error) string {
	if told, ok := errors.AsType[*failure](err); ok {
		return told.Code
	}
	return ""
}
