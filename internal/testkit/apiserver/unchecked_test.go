package apiserver_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/einmal-operators/einmal/internal/testkit/apiserver"
)

func tolerant() *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}, Spec: corev1.PodSpec{
		Containers:  []corev1.Container{{Name: "main", Image: "example.org/app:1"}},
		Tolerations: []corev1.Toleration{{Key: "a", Operator: corev1.TolerationOpExists}},
		Volumes:     []corev1.Volume{{Name: "a", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/a"}}}},
	}}
}

func TestUncheckedFieldsAreRefusedUnlessTheyAreAllowed(t *testing.T) {
	_, api := apiserver.Start(t, apiserver.WithUnchecked("Pod.spec.tolerations"))
	err := api.Create(t.Context(), tolerant())
	if reason := apierrors.ReasonForError(err); reason != apiserver.ReasonNotChecked {
		t.Fatalf("the reason is %q: %v", reason, err)
	}
	const want = `Pod "a": spec.volumes.hostPath is not checked here: the API server for tests does not validate it; ` +
		`allow it with World.AllowUnchecked("Pod.spec.volumes.hostPath"), or test it with StartCluster`
	if err.Error() != want {
		t.Errorf("the refusal says\n%v\nwant\n%s", err, want)
	}
}

func TestAnAllowedPathCoversWhatIsBelowIt(t *testing.T) {
	_, api := apiserver.Start(t, apiserver.WithUnchecked("Pod.spec.tolerations", "Pod.spec.volumes"))
	if err := api.Create(t.Context(), tolerant()); err != nil {
		t.Error(err)
	}
}

// Of some fields, only certain values are checked.
func TestAnUncheckedValueIsRefusedUnlessItsFieldIsAllowed(t *testing.T) {
	outside := func(name string) *corev1.Service {
		return &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
			Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "example.org"},
		}
	}
	_, api := apiserver.Start(t)
	err := api.Create(t.Context(), outside("a"))
	const want = `spec.type=ExternalName is not checked here: the API server for tests does not validate it; ` +
		`allow it with World.AllowUnchecked("Service.spec.type"), or test it with StartCluster`
	if reason := apierrors.ReasonForError(err); reason != apiserver.ReasonNotChecked || !strings.Contains(err.Error(), want) {
		t.Errorf("the refusal says\n%v\nwant in it\n%s", err, want)
	}
	_, tolerates := apiserver.Start(t, apiserver.WithUnchecked("Service.spec.type", "Service.spec.externalName"))
	if err := tolerates.Create(t.Context(), outside("a")); err != nil {
		t.Error(err)
	}
}

func TestAnUncheckedPathNeedsAKnownKind(t *testing.T) {
	for _, path := range []string{"spec.tolerations", "ConfigMap.data", ""} {
		server, err := apiserver.New(apiserver.WithUnchecked(path))
		if err == nil {
			server.Close()
		}
		if err == nil || !strings.Contains(err.Error(), "with unchecked fields, want one of") || !strings.Contains(err.Error(), "StatefulSet") {
			t.Errorf("%q: %v", path, err)
		}
	}
}
