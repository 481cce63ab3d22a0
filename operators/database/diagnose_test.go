package main

import (
	"errors"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/einmal-operators/einmal/credential"
	v1 "github.com/einmal-operators/einmal/operators/database/api/v1"
	"github.com/einmal-operators/einmal/operators/database/engine"
	"github.com/einmal-operators/einmal/operators/database/manifest"
	"github.com/einmal-operators/einmal/operators/database/version"
)

// podWith returns a Pod whose containers have these states.
func podWith(init, server corev1.ContainerStatus) *corev1.Pod {
	init.Name, server.Name = "data", string(v1.PostgreSQL)
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "orders-db-0", Labels: map[string]string{manifest.RoleLabel: manifest.RolePrimary}},
		Status: corev1.PodStatus{
			InitContainerStatuses: []corev1.ContainerStatus{init}, ContainerStatuses: []corev1.ContainerStatus{server},
		},
	}
}

// loginFails is what was found if the login of the app fails.
func loginFails(err error) findings {
	ready := podWith(corev1.ContainerStatus{}, corev1.ContainerStatus{})
	ready.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	return findings{observed: observed{set: &appsv1.StatefulSet{}, pod: ready}, probe: &probe{login: err}}
}

// ended is a container that has ended and waits for its next start.
func ended(code int32, message string) corev1.ContainerStatus {
	return corev1.ContainerStatus{
		State:                corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}},
		LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Message: message}},
	}
}

func waiting(reason string) corev1.ContainerStatus {
	return corev1.ContainerStatus{Image: "postgres:99", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}}
}

func TestProblemsAreNamedWithTheirRemedy(t *testing.T) {
	none := corev1.ContainerStatus{}
	unschedulable := podWith(none, none)
	unschedulable.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "0/3 nodes are available"}}
	stopping := podWith(none, none)
	stopping.DeletionTimestamp = &metav1.Time{}
	away := podWith(none, none)
	away.Spec.NodeName = "worker-1"
	lost := findings{observed: observed{pod: away, lost: map[string]string{"worker-1": "NodeStatusUnknown: Kubelet stopped posting node status."}}}
	inPod := func(pod *corev1.Pod) findings {
		return findings{observed: observed{set: &appsv1.StatefulSet{}, pod: pod}}
	}
	tests := []struct {
		found   findings
		want    string
		blocked bool
	}{
		{loginFails(nil), ": ", false},
		{inPod(nil), "WaitingForPod: waiting for the Pod orders-db-0", false},
		{inPod(podWith(none, none)), "Starting: the server in the Pod orders-db-0 starts", false},
		{inPod(stopping), "Stopping: the Pod orders-db-0 is being deleted", false},
		{
			lost, "PrimaryNodeLost: the node worker-1 of the Pod orders-db-0 is not ready (NodeStatusUnknown: Kubelet stopped posting node status.); " +
				"if the node is off and does not return, this starts the Pod on another one, if its volume can move: " +
				"kubectl taint nodes worker-1 node.kubernetes.io/out-of-service=nodeshutdown:NoExecute", true,
		},
		{inPod(unschedulable), "Unschedulable: the Pod orders-db-0 waits for a node: 0/3 nodes are available", false},
		{
			inPod(podWith(waiting("ImagePullBackOff"), none)),
			"ImageNotAvailable: the image postgres:99 of the Pod orders-db-0 cannot be pulled; check the version, spec.image and the operator's flag --image", true,
		},
		{
			inPod(podWith(ended(1, "DataMissing: the volume is empty"), none)),
			"DataMissing: the volume of the claim data-orders-db-0 is empty, and held a database before: restore the volume; " +
				"to begin with an empty database, delete the Database and create it again", true,
		},
		{inPod(podWith(ended(1, "VersionMismatch: not 15"), none)), "VersionMismatch: not 15", true},
		{inPod(podWith(none, ended(1, "VolumeInUse: another Pod uses the volume"))), "VolumeInUse: claim data-orders-db-0: another Pod uses the volume", false},
		{
			inPod(podWith(none, ended(2, `Details: ERROR in "insert into cards values (4111)"`))),
			"Restarting: the container postgresql of the Pod orders-db-0 ended with code 2 and is started again; see its log", false,
		},
		{
			findings{credentials: credentials{secret: "orders-db-app", err: credential.ErrMissing}},
			"CredentialsMissing: the Secret orders-db-app is missing, and the database has a password: restore the Secret orders-db-app.g1 " +
				"from a backup; the operator does not generate another password, which the apps in use do not have", true,
		},
		{
			findings{credentials: credentials{secret: "orders-db-app", err: credential.ErrConflict}},
			"CredentialsConflict: the Secret orders-db-app exists and does not belong to this Database: delete it, or choose another name for the Database: " +
				credential.ErrConflict.Error(), true,
		},
		{findings{credentials: credentials{secret: "orders-db-app", err: errors.New("timeout")}}, "CredentialsUnknown: read the Secret orders-db-app: timeout", false},
		{loginFails(engine.ErrRefused), "PasswordRefused: the server refuses the password in the Secret orders-db-app: restore the Secret, or set the password in the database: " +
			"kubectl exec --namespace default orders-db-0 -- " + manifest.SetPassword(ordersDB()), true},
		{
			loginFails(fmt.Errorf("%w: %w", engine.ErrFull, engine.NewAnswerError("too many connections", "53300"))),
			"ConnectionsExhausted: the user has all connections that it can have: the server answers too many connections (53300): " +
				"let apps close connections, raise max_connections in spec.parameters, or raise the connection limit that the answer names", false,
		},
		{
			loginFails(errors.New("no route to host")),
			"Unreachable: no route to host; the operator connects to orders-db-rw as apps do: check its network policies", false,
		},
		{
			loginFails(&engine.AnswerError{Message: "the database system is in recovery mode", Code: "57P03", Passes: true}),
			"Connecting: the server answers the database system is in recovery mode (57P03); the operator tries again", false,
		},
		{
			loginFails(&engine.AnswerError{Message: "role is not permitted to log in", Code: "28000", Remedy: "alter role app login"}),
			"LoginRejected: the server answers role is not permitted to log in (28000): correct that as the superuser (alter role app login): " +
				"kubectl exec --stdin --tty --namespace default orders-db-0 -- " + manifest.Shell(ordersDB()), true,
		},
		{
			loginFails(engine.NewAnswerError("no pg_hba.conf entry", "28000")),
			"LoginRejected: the server answers no pg_hba.conf entry (28000): correct that as the superuser: " +
				"kubectl exec --stdin --tty --namespace default orders-db-0 -- " + manifest.Shell(ordersDB()), true,
		},
		{findings{children: errors.New("quota")}, "ObjectRefused: quota", true},
		{findings{growth: errors.New("no")}, "GrowthRefused: no: let the storage class expand volumes, or set spec.storage back to status.storage.requested", true},
		{findings{choice: version.Choice{Problem: "too old"}}, "VersionNotSupported: too old", true},
	}
	for _, test := range tests {
		db := ordersDB()
		db.Status.Endpoint = "orders-db-rw"
		got := diagnose(db, test.found)
		if text := fmt.Sprintf("%s: %s", got.reason, got.message); text != test.want || got.person != test.blocked {
			t.Errorf("got %q, a person has to act: %t; want %q, %t", text, got.person, test.want, test.blocked)
		}
	}
}

func TestAnEngineThatIsNotSupportedIsSaid(t *testing.T) {
	db := ordersDB()
	db.Spec.Engine = v1.MySQL
	if got := diagnose(db, findings{}); got.reason != "EngineNotSupported" || !got.person {
		t.Errorf("got %+v", got)
	}
}
