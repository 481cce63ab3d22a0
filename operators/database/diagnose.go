package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/einmal-operators/einmal/credential"
	v1 "github.com/einmal-operators/einmal/operators/database/api/v1"
	"github.com/einmal-operators/einmal/operators/database/engine"
	"github.com/einmal-operators/einmal/operators/database/manifest"
)

// objectRefused is the reason for which an object of a Database cannot be made or used.
const objectRefused = "ObjectRefused"

// volumeFull is the reason for which a server ends whose volume is full: see server.sh.
const volumeFull = "VolumeFull"

// problem is why a Database is not ready.
type problem struct {
	// reason is the problem in one word. It is "" if there is none.
	reason  string
	message string
	// person reports whether a person has to act. Otherwise the problem passes by itself.
	person bool
}

// diagnose returns the first problem of a Database: the one that explains the others.
func diagnose(db *v1.Database, found findings) problem {
	switch {
	case !supported(db):
		return problem{"EngineNotSupported", engineMessage(db), true}
	case found.foreign != nil:
		return problem{objectRefused, found.foreign.Error(), true}
	case found.leaving:
		return problem{"Stopping", "the server of the deleted Database of this name has not ended yet", false}
	case found.credentials.err != nil && !found.replaceable(db):
		return credentialProblem(found.credentials)
	case found.children != nil:
		return problem{objectRefused, found.children.Error(), true}
	case found.choice.Problem != "":
		return problem{"VersionNotSupported", found.choice.Problem, true}
	case found.parameters.wrong != "":
		return problem{"ParametersInvalid", found.parameters.wrong, true}
	case found.growth != nil:
		return problem{"GrowthRefused", fmt.Sprintf("%v: let the storage class expand volumes, or set spec.storage back to status.storage.requested", found.growth), true}
	case moving(db) != nil:
		return withFailover(db, found, movingProblem(*db.Status.Switchover, found))
	case found.available() && found.probe != nil && found.probe.state != nil && found.probe.state.Refused != "":
		return problem{"ParametersRefused", "the server refuses parameters of the spec: " + found.probe.state.Refused, true}
	case found.available():
		return loginProblem(db, found)
	case found.pod == nil:
		return problem{"WaitingForPod", "waiting for the Pod " + manifest.Pod(db, found.first), false}
	}
	return withFailover(db, found, found.problemIn(found.pod))
}

// credentialProblem explains why there is no password for the apps.
func credentialProblem(found credentials) problem {
	secret, err := found.secret, found.err
	switch {
	case errors.Is(err, credential.ErrMissing):
		return problem{"CredentialsMissing", fmt.Sprintf("the Secret %s is missing, and the database has a password: restore the Secret %s.g1 from a backup; "+
			"the operator does not generate another password, which the apps in use do not have", secret, secret), true}
	case errors.Is(err, credential.ErrConflict):
		return problem{"CredentialsConflict", fmt.Sprintf("the Secret %s exists and does not belong to this Database: delete it, or choose another name for the Database: %v",
			secret, err), true}
	case credential.Blocked(err):
		return problem{"CredentialsInvalid", fmt.Sprintf("the Secret %s cannot be used: %v", secret, err), true}
	}
	return problem{"CredentialsUnknown", fmt.Sprintf("read the Secret %s: %v", secret, err), false}
}

// loginProblem explains why the app's login fails.
func loginProblem(db *v1.Database, found findings) problem {
	switch last := found.probe; {
	case last == nil || last.login == nil || last.brief() && meta.IsStatusConditionTrue(db.Status.Conditions, v1.ConditionReady):
		return problem{}
	case last.brief():
		return problem{"Connecting", "the server runs, and the operator connects to " + db.Status.Endpoint, false}
	case errors.Is(last.login, engine.ErrRefused):
		return problem{"PasswordRefused", fmt.Sprintf("the server refuses the password in the Secret %s: restore the Secret, or set the password in the database: "+
			"kubectl exec --namespace %s %s -- %s", manifest.AppSecret(db), db.Namespace, manifest.Pod(db, found.first), manifest.SetPassword(db)), true}
	}
	return refusedLogin(db, found)
}

// refusedLogin explains a failed login by what the server has answered, if it has.
func refusedLogin(db *v1.Database, found findings) problem {
	failed := found.probe.login
	answer, answered := errors.AsType[*engine.AnswerError](failed)
	switch {
	case errors.Is(failed, engine.ErrFull):
		return problem{"ConnectionsExhausted", fmt.Sprintf("%v: let apps close connections, raise max_connections in spec.parameters, or raise the connection limit that the answer names",
			failed), false}
	case !answered:
		return problem{"Unreachable", fmt.Sprintf("%v; the operator connects to %s as apps do: check its network policies", failed, db.Status.Endpoint), false}
	case answer.Passes:
		return problem{"Connecting", fmt.Sprintf("%v; the operator tries again", failed), false}
	}
	remedy := "correct that as the superuser"
	if answer.Remedy != "" {
		remedy += " (" + answer.Remedy + ")"
	}
	return problem{"LoginRejected", fmt.Sprintf("%v: %s: kubectl exec --stdin --tty --namespace %s %s -- %s",
		failed, remedy, db.Namespace, manifest.Pod(db, found.first), manifest.Shell(db)), true}
}

// podProblem explains why the server does not accept connections.
func podProblem(pod *corev1.Pod) problem {
	if pod.DeletionTimestamp != nil {
		return problem{"Stopping", fmt.Sprintf("the Pod %s is being deleted", pod.Name), false}
	}
	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if found := containerProblem(pod, status); found.reason != "" {
			return found
		}
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
			return problem{"Unschedulable", fmt.Sprintf("the Pod %s waits for a node: %s", pod.Name, condition.Message), false}
		}
	}
	if location, name := manifest.Restores(pod.Spec); location != "" {
		backup := "the backup " + name
		if name == manifest.Newest {
			backup = "the newest backup"
		}
		return problem{"Restoring", fmt.Sprintf("the database gets %s in %s: kubectl logs --namespace %s %s --all-containers", backup, location, pod.Namespace, pod.Name), false}
	}
	return problem{"Starting", fmt.Sprintf("the server in the Pod %s starts", pod.Name), false}
}

// containerProblem explains why a container does not run, or returns no problem.
func containerProblem(pod *corev1.Pod, status corev1.ContainerStatus) problem {
	waiting := status.State.Waiting
	if waiting != nil && slices.Contains([]string{"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull"}, waiting.Reason) {
		check := "the version, spec.image and the operator's flag " + manifest.ImageFlag(pod.Spec)
		if manifest.RunsOperator(status.Name) {
			check = "spec.imagePullSecrets and the operator's flag --operator-image"
		}
		return problem{"ImageNotAvailable", fmt.Sprintf("the image %s of the Pod %s cannot be pulled; check %s", status.Image, pod.Name, check), true}
	}
	if waiting != nil && waiting.Reason == "CreateContainerConfigError" {
		return problem{"SecretNotUsable", fmt.Sprintf("the container %s of the Pod %s cannot start: %s", status.Name, pod.Name, waiting.Message), true}
	}
	ended := status.State.Terminated
	if ended == nil {
		ended = status.LastTerminationState.Terminated
	}
	if ended == nil || ended.ExitCode == 0 || status.State.Running != nil && status.Ready {
		return problem{}
	}
	reason, message, known := strings.Cut(ended.Message, ": ")
	if found := scriptProblem(manifest.Claim(pod.Name), reason, message); known && found.reason != "" {
		return found
	}
	return problem{"Restarting", fmt.Sprintf("the container %s of the Pod %s ended with code %d and is started again; see its log", status.Name, pod.Name, ended.ExitCode), false}
}

// scriptProblem explains a message of the script server.sh. It returns no problem for other messages, which can contain data of users.
func scriptProblem(claim, reason, message string) problem {
	switch reason {
	case "DataMissing":
		return problem{reason, fmt.Sprintf("the volume of the claim %s is empty, and held a database before: restore the volume; "+
			"to begin with an empty database, delete the Database and create it again", claim), true}
	case "VersionMismatch":
		return problem{reason, message, true}
	case "VolumeNotWritable", "CreationFailed", "CredentialsInvalid", "CredentialsMissing":
		return problem{reason, fmt.Sprintf("claim %s: %s", claim, message), true}
	case restoreFailed:
		return problem{reason, message + "; it is tried again by itself, and at once if you change spec.bootstrap", true}
	case volumeFull:
		return problem{reason, fmt.Sprintf("the volume of the claim %s is full (%s): raise spec.storage", claim, message), true}
	case "NotACopy", "OtherDatabase":
		return problem{reason, fmt.Sprintf("claim %s: %s: to make the standby again, delete the claim and the Pod", claim, message), true}
	case "NotThePrimary":
		return problem{reason, fmt.Sprintf("claim %s: %s, and the operator does not make it the primary: restore the volume", claim, message), true}
	case "VolumeInUse", "CopyFailed":
		return problem{reason, fmt.Sprintf("claim %s: %s", claim, message), false}
	}
	return problem{}
}
