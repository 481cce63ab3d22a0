package elasticache

import (
	"errors"
	"fmt"
	"strings"

	"github.com/aws/smithy-go"

	"github.com/einmal-operators/einmal/credential"
)

// The kinds of errors, besides failed requests.
var (
	// ErrSettling: a change is in progress, or another change has to end first. The error passes.
	ErrSettling = errors.New("change in progress")
	// ErrQuota: the account or all groups have the maximum number of users. A person has to get the quota raised or use another cache.
	ErrQuota = errors.New("the maximum number of users is reached")
	// ErrDuplicate: the group has another user with that name. A person has to remove it.
	ErrDuplicate = errors.New("another user in the group has the same name")
	// ErrDenied: the operator's role lacks a right. A person has to grant it.
	ErrDenied = errors.New("the operator's AWS role lacks a permission")
	// ErrNoGroup: a user group does not exist or is not attached. A person has to correct that.
	ErrNoGroup = errors.New("user group not available")
)

// settling returns an ErrSettling that describes the change in progress.
func settling(format string, args ...any) error {
	return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), ErrSettling)
}

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

// codeOf returns the error code of AWS, or "" if the error does not come from AWS.
func codeOf(err error) string {
	if api, is := errors.AsType[smithy.APIError](err); is {
		return api.ErrorCode()
	}
	return ""
}

// told returns an error of a request, with its kind and remedy. It removes the error text if it contains one of the passwords,
// because AWS could quote the request.
func told(doing string, err error, passwords ...credential.Password) error {
	if err == nil {
		return nil
	}
	code := codeOf(err)
	for _, password := range passwords {
		if !password.IsZero() && strings.Contains(err.Error(), password.Reveal()) {
			err = errors.New("AWS error " + code)
		}
	}
	switch code {
	case codeUserState, codeGroupState:
		return settling("%s: AWS error %s", doing, code)
	case codeUserQuota, codeGroupQuota:
		err = fmt.Errorf("%w: %w; request a higher quota, or use another cache", ErrQuota, err)
	case codeDuplicate:
		err = fmt.Errorf("%w: %w; remove the other user from the group", ErrDuplicate, err)
	case codeGroupNotFound:
		err = fmt.Errorf("%w: %w; create it and attach it to the cache, or use another in spec.cache.elastiCache.userGroupIds", ErrNoGroup, err)
	}
	if strings.HasPrefix(code, "AccessDenied") {
		err = fmt.Errorf("%w: %w", ErrDenied, err)
	}
	return fmt.Errorf("%s: %w", doing, err)
}
