package main

import (
	"errors"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/einmal-operators/einmal/credential"
	"github.com/einmal-operators/einmal/credential/ssm"
	"github.com/einmal-operators/einmal/operators/tenant/elasticache"
	"github.com/einmal-operators/einmal/operators/tenant/postgres"
	"github.com/einmal-operators/einmal/operators/tenant/redis"
)

// class decides what the operator does after an error.
type class int

// The classes, from best to worst.
const (
	// fine: there is no error.
	fine class = iota
	// waiting: the error passes without action, within seconds or minutes.
	waiting
	// unknown: a system or the store could not be queried. The operator changed nothing.
	unknown
	// blocked: the error stays until a person acts. The operator wrote nothing.
	blocked
)

// The reasons of conditions that are not True.
const (
	reasonMissing   = "CredentialsMissing"
	reasonSuspected = "CredentialsNotSeen"
	reasonConflict  = "OwnershipConflict"
	reasonInvalid   = "CredentialInvalid"
	reasonUnwritten = "CannotPublish"
	reasonDrifted   = "Drifted"
	reasonSetUp     = "BackendNotSetUp"
	reasonRights    = "AdminLacksRights"
	reasonOpen      = "DefaultUserOpen"
	reasonVersion   = "UnsupportedVersion"
	reasonPooler    = "ConnectionPooler"
	reasonDependent = "DependentObjects"
	reasonQuota     = "QuotaExceeded"
	reasonDuplicate = "DuplicateUser"
	reasonNoGroup   = "UserGroupMissing"
	reasonFull      = "PasswordsFull"
	reasonLocked    = "LockHeld"
	reasonInUse     = "DatabaseInUse"
	reasonUnusable  = "LoginFails"
	reasonHangs     = "DatabaseHangs"
	reasonRevoking  = "RevokingCredentials"
	reasonSessions  = "SessionsRemain"
	reasonEnding    = "NamespaceTerminating"
	reasonAdmission = "AdmissionDenied"
	reasonInsecure  = "InsecureAuthentication"
	reasonContested = "PasswordContested"
	reasonUnsaved   = "UsersNotSaved"
	reasonSettling  = "Settling"
	reasonUnknown   = "Unreachable"
)

// meaning assigns a class and a reason to an error.
type meaning struct {
	of     error
	class  class
	reason string
}

// meanings returns the known errors. The first match applies.
func meanings() []meaning {
	return []meaning{
		{credential.ErrMissing, blocked, reasonMissing},
		{credential.ErrConflict, blocked, reasonConflict},
		{credential.ErrInvalid, blocked, reasonInvalid},
		{credential.ErrUnwritable, blocked, reasonUnwritten},
		{credential.ErrDrifted, blocked, reasonDrifted},
		{credential.ErrUnusable, waiting, reasonUnusable},
		{errSetUp, blocked, reasonSetUp},
		{postgres.ErrRights, blocked, reasonRights},
		{redis.ErrDenied, blocked, reasonRights},
		{elasticache.ErrDenied, blocked, reasonRights},
		{postgres.ErrInsecure, blocked, reasonInsecure},
		{redis.ErrOpen, blocked, reasonOpen},
		{postgres.ErrVersion, blocked, reasonVersion},
		{postgres.ErrPooler, blocked, reasonPooler},
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
		{postgres.ErrInUse, waiting, reasonInUse},
		{postgres.ErrSessions, waiting, reasonSessions},
		{postgres.ErrHangs, waiting, reasonHangs},
		{credential.ErrSuperseded, waiting, reasonSettling},
		{postgres.ErrUnsettled, waiting, reasonSettling},
		{redis.ErrUnsaved, waiting, reasonUnsaved},
		{errContested, waiting, reasonContested},
		{redis.ErrNotReady, waiting, reasonSettling},
		{redis.ErrFull, blocked, reasonFull},
	}
}

// classify returns the class and the condition reason of an error.
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
	if reason := refusedBy(err); reason != "" {
		return blocked, reason
	}
	return unknown, reasonUnknown
}

// refusedBy returns the reason of a request that the Kubernetes API refused until a person acts, or "". The code 403 also stands for quotas,
// namespaces that are being deleted, and admission. Quotas and webhooks are only in the message, which begins with the API server's own words.
func refusedBy(err error) string {
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) {
		return ""
	}
	message := answer.Status().Message
	switch {
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return reasonEnding
	case strings.HasPrefix(message, "admission webhook ") && strings.Contains(message, " denied the request"),
		strings.Contains(message, "is forbidden: ValidatingAdmissionPolicy '") && strings.Contains(message, " denied request: "):
		return reasonAdmission
	case !apierrors.IsForbidden(err):
		return ""
	case strings.Contains(message, "is forbidden: exceeded quota: "), strings.Contains(message, "is forbidden: failed quota: "),
		strings.Contains(message, "is forbidden: insufficient quota "):
		return reasonQuota
	case strings.Contains(message, `is forbidden: User "`), strings.Contains(message, "is forbidden: cannot set "): // The authorizer, and the admission of owner references.
		return reasonRights
	}
	return reasonAdmission
}
