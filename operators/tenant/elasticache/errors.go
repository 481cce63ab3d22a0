package elasticache

import (
	"errors"
	"fmt"
	"hash/fnv"
	"strings"
	"time"

	"github.com/aws/smithy-go"

	"github.com/einmal-operators/einmal/credential"
)

// What AWS says beside that it could not be asked.
var (
	// ErrSettling: AWS is at it, or at something that has to end first. It passes by itself: see SettlingError.
	ErrSettling = errors.New("it has not settled yet")
	// ErrQuota: there are as many users as the account may have, or as all groups take. A person has to have the quota raised, or to use another cache.
	ErrQuota = errors.New("there is no room for another user")
	// ErrDuplicate: the group has another user of that name. A person has to remove it.
	ErrDuplicate = errors.New("another user has that name")
	// ErrDenied: the operator's role lacks a right. A person has to give it.
	ErrDenied = errors.New("the operator's role may not do that")
	// ErrNoGroup: a user group is not there. A person has to make it, or to name another.
	ErrNoGroup = errors.New("there is no such user group")
)

// How long to wait before looking again at what settles: from minWait on, and not all at the same time (tenant-and-database.md §2, Details).
const (
	minWait  = 5 * time.Second
	waitSpan = 10 * time.Second
)

// SettlingError tells what has not settled. It is an ErrSettling.
type SettlingError struct {
	// What is so, for a person.
	What string
	// After is how long to wait before looking again: 5 to 15 s, always the same for a user.
	After time.Duration
}

func (e *SettlingError) Error() string { return e.What + ": " + ErrSettling.Error() }

// Unwrap makes it an ErrSettling.
func (*SettlingError) Unwrap() error { return ErrSettling }

func settling(username, format string, args ...any) error {
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(username)) // It never fails.
	spread := time.Duration(sum.Sum64() % uint64(waitSpan))
	return &SettlingError{What: fmt.Sprintf(format, args...), After: minWait + spread}
}

// The codes of AWS, which lack the "Fault" at the end that the types of the SDK have.
const (
	codeUserNotFound  = "UserNotFound"
	codeGroupNotFound = "UserGroupNotFound"
	codeUserExists    = "UserAlreadyExists"
	codeUserState     = "InvalidUserState"
	codeGroupState    = "InvalidUserGroupState"
	codeUserQuota     = "UserQuotaExceeded"
	codeGroupQuota    = "UserGroupQuotaExceeded"
	codeDuplicate     = "DuplicateUserName"
	codeValue         = "InvalidParameterValue"
	codeCombination   = "InvalidParameterCombination"
)

// codeOf is the code of what AWS said, "" if it is not AWS that said something.
func codeOf(err error) string {
	if api, is := errors.AsType[smithy.APIError](err); is {
		return api.ErrorCode()
	}
	return ""
}

// told is an error of a request about a user, with what it means and what to do. What AWS says could quote what it was sent, so passwords are
// looked for.
func told(doing, username string, err error, passwords ...credential.Password) error {
	if err == nil {
		return nil
	}
	code := codeOf(err)
	for _, password := range passwords {
		if !password.IsZero() && strings.Contains(err.Error(), password.Reveal()) {
			err = errors.New("AWS says " + code)
		}
	}
	switch code {
	case codeUserState, codeGroupState:
		return settling(username, "%s: AWS says %s", doing, code)
	case codeUserQuota, codeGroupQuota:
		err = fmt.Errorf("%w: %w; have the quota raised, or use another cache", ErrQuota, err)
	case codeDuplicate:
		err = fmt.Errorf("%w: %w; remove the other user from the group", ErrDuplicate, err)
	case codeGroupNotFound:
		err = fmt.Errorf("%w: %w; make it and attach it to the cache, or name another", ErrNoGroup, err)
	}
	if strings.HasPrefix(code, "AccessDenied") {
		err = fmt.Errorf("%w: %w", ErrDenied, err)
	}
	return fmt.Errorf("%s: %w", doing, err)
}
