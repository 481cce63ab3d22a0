package credential

import "fmt"

// action is what to do in the other system after the store has a credential.
type action string

const (
	nothing action = "leave"
	create  action = "create"
	set     action = "set the password of"
)

// situation is the observed state of a user.
type situation struct {
	// lost reports that the store has no credential for the user.
	lost  bool
	state State
	// unfinished reports that the system may never have received the credential: it was just stored, or an earlier call was interrupted.
	unfinished bool
}

// decide implements the table in docs/concepts/credentials.md for one user.
func (p Policy) decide(is situation) (action, error) {
	switch {
	case is.state == Absent:
		return create, nil
	case is.state == Foreign:
		return "", fmt.Errorf("marked for another owner: %w", ErrConflict)
	case is.state == Unmarked && !p.Adopt:
		return "", fmt.Errorf("no ownership mark: %w; remove the user, or allow adopting it", ErrConflict)
	case is.lost && !p.ReplaceMissing:
		return "", fmt.Errorf("%w; restore the credential, or allow replacing it", ErrMissing)
	case is.state == Unmarked:
		return set, nil // Set adds the mark.
	case is.state == Accepted, is.state == Present && !is.lost:
		return nothing, nil
	case p.LeaveDrift && !is.lost && !is.unfinished:
		return "", fmt.Errorf("%w; set the stored password in the system, or allow Converge to set it", ErrDrifted)
	default:
		return set, nil
	}
}
