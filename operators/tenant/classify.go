package main

import (
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/einmal-operators/einmal/credential"
	"github.com/einmal-operators/einmal/credential/ssm"
	"github.com/einmal-operators/einmal/operators/tenant/elasticache"
	"github.com/einmal-operators/einmal/operators/tenant/postgres"
	"github.com/einmal-operators/einmal/operators/tenant/redis"
)

// class is what an error means for what is done next.
type class int

// The classes, the worst last.
const (
	// fine: there is none.
	fine class = iota
	// waiting: it passes by itself, within seconds or minutes.
	waiting
	// unknown: a system or the store could not be asked. Nothing was decided.
	unknown
	// blocked: it stays until a person has looked. Nothing was written.
	blocked
)

// The reasons of conditions that are not true.
const (
	reasonMissing   = "CredentialsMissing"
	reasonSuspected = "CredentialsNotSeen"
	reasonConflict  = "OwnershipConflict"
	reasonInvalid   = "CredentialInvalid"
	reasonDrifted   = "Drifted"
	reasonSetUp     = "BackendNotSetUp"
	reasonRights    = "AdminLacksRights"
	reasonOpen      = "DefaultUserOpen"
	reasonVersion   = "UnsupportedVersion"
	reasonDependent = "DependentObjects"
	reasonQuota     = "QuotaExceeded"
	reasonDuplicate = "DuplicateUser"
	reasonNoGroup   = "UserGroupMissing"
	reasonFull      = "PasswordsFull"
	reasonLocked    = "LockHeld"
	reasonInsecure  = "InsecureAuthentication"
	reasonSettling  = "Settling"
	reasonUnknown   = "Unreachable"
)

// meaning is what an error means.
type meaning struct {
	of     error
	class  class
	reason string
}

// meanings are those that are known, the first that fits first.
func meanings() []meaning {
	return []meaning{
		{credential.ErrMissing, blocked, reasonMissing},
		{credential.ErrConflict, blocked, reasonConflict},
		{credential.ErrInvalid, blocked, reasonInvalid},
		{credential.ErrDrifted, blocked, reasonDrifted},
		{errSetUp, blocked, reasonSetUp},
		{postgres.ErrRights, blocked, reasonRights},
		{redis.ErrDenied, blocked, reasonRights},
		{elasticache.ErrDenied, blocked, reasonRights},
		{postgres.ErrInsecure, blocked, reasonInsecure},
		{redis.ErrOpen, blocked, reasonOpen},
		{postgres.ErrVersion, blocked, reasonVersion},
		{redis.ErrVersion, blocked, reasonVersion},
		{postgres.ErrDependent, blocked, reasonDependent},
		{elasticache.ErrQuota, blocked, reasonQuota},
		{ssm.ErrQuota, blocked, reasonQuota},
		{elasticache.ErrDuplicate, blocked, reasonDuplicate},
		{elasticache.ErrNoGroup, blocked, reasonNoGroup},
		{elasticache.ErrSettling, waiting, reasonSettling},
		{credential.ErrUnproven, waiting, reasonSettling},
		{credential.ErrUnsettled, waiting, reasonSettling},
		{postgres.ErrLocked, waiting, reasonLocked},
		{credential.ErrSuperseded, waiting, reasonSettling},
		{postgres.ErrUnsettled, waiting, reasonSettling},
		{redis.ErrNotReady, waiting, reasonSettling},
		{redis.ErrFull, blocked, reasonFull},
	}
}

// classify tells what an error means, and gives one word for it.
func classify(err error) (class, string) {
	if err == nil {
		return fine, ""
	}
	if maybe := (suspected{}); errors.As(err, &maybe) {
		return waiting, reasonSuspected
	}
	for _, known := range meanings() {
		if errors.Is(err, known.of) {
			return known.class, known.reason
		}
	}
	if apierrors.IsForbidden(err) {
		return blocked, reasonRights
	}
	return unknown, reasonUnknown
}
