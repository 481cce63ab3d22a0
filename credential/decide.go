package credential

import "fmt"

// action is what is to be done in the other system, after the store has a credential.
type action string

const (
	nothing action = "leave"
	create  action = "create"
	set     action = "set the password of"
)

// situation is what there is of a user.
type situation struct {
	// lost tells that the store has lost, or never had, its credential.
	lost  bool
	state State
	// unfinished tells that the system may never have been given the credential: it was stored just now, or what was to follow was broken off.
	unfinished bool
}

// decide is the table of tenant-and-database.md §2 for one system: what is done about a user.
func (p Policy) decide(is situation) (action, error) {
	switch {
	case is.state == Absent:
		return create, nil
	case is.state == Foreign:
		return "", fmt.Errorf("the system has it marked for another owner: %w", ErrConflict)
	case is.state == Unmarked && !p.Adopt:
		return "", fmt.Errorf("the system has it without a mark: %w; remove it, or allow to adopt it", ErrConflict)
	case is.lost && !p.ReplaceMissing:
		return "", fmt.Errorf("%w; restore that, or allow to replace it", ErrMissing)
	case is.state == Unmarked:
		return set, nil // So it gets its mark.
	case is.state == Accepted, is.state == Present && !is.lost:
		return nothing, nil
	case p.LeaveDrift && !is.lost && !is.unfinished:
		return "", fmt.Errorf("%w; set the stored one, or allow that", ErrDrifted)
	default:
		return set, nil
	}
}
