package awslab

import (
	"errors"
	"slices"
)

// CodeRefused is the code in the journal of a call whose connection was closed before the call was performed.
const CodeRefused = "refused"

// Call is an entry of the journal. It never contains a value, a password or an access string.
type Call struct {
	// Service is "ssm" or "elasticache".
	Service string
	// Action is the name of the action, such as PutParameter.
	Action string
	// Resource is the name of the parameter, or the ID of the user or group. Several are separated by commas.
	Resource string
	// Write reports whether the action changes something if it succeeds.
	Write bool
	// Code is the error code, or "" for success. If the response was lost, it is the code of the lost response.
	Code string
}

// Journal returns the calls since New or Forget. Each attempt of the SDK is a separate call.
func (l *Lab) Journal() []Call {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return slices.Clone(l.journal)
}

// Forget clears the journal.
func (l *Lab) Forget() {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.journal = nil
}

// Writes returns the number of calls in the journal with a write action, including failed ones.
func (l *Lab) Writes() int {
	return l.count(func(c Call) bool { return c.Write })
}

// Count returns the number of calls of an action in the journal, including failed ones.
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

// Fault is a failure of a call. If both Lost and Code are set, Lost applies.
type Fault struct {
	// Resource restricts the fault to calls for a resource. If it is empty, the fault applies to any resource.
	Resource string
	// Lost performs the call and then closes the connection without a response.
	Lost bool
	// Code is returned as an error, such as ThrottlingException, and the call is not performed. Codes of ElastiCache lack the suffix
	// "Fault" of the SDK's types.
	Code string
	// Message is the message of the error.
	Message string
}

// planned is a fault that has not been applied yet.
type planned struct {
	action string
	fault  Fault
}

// Fail plans faults for the next calls of an action, or of any action if it is empty. Each fault applies to one call, in the given order.
// Use slices.Repeat to fail several calls in the same way.
func (l *Lab) Fail(action string, faults ...Fault) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	for _, fault := range faults {
		l.faults = append(l.faults, planned{action, fault})
	}
}

// Heal removes all planned faults.
func (l *Lab) Heal() {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.faults = nil
}

// Refuse sets whether the Lab closes every connection without performing the call.
func (l *Lab) Refuse(all bool) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.refuses = all
}

// next removes and returns the fault that is planned for a call.
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

// failure is an error response of a service.
type failure struct{ Code, Message string }

func (f *failure) Error() string { return f.Code + ": " + f.Message }

func refuse(code, message string) *failure {
	return &failure{code, message}
}

func codeOf(err error) string {
	if failed, ok := errors.AsType[*failure](err); ok {
		return failed.Code
	}
	return ""
}
