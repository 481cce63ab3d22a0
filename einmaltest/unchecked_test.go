package einmaltest_test

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/einmaltest"
)

// tolerant makes a Pod with a toleration, which the API server in memory does not validate.
func tolerant(allow ...string) einmaltest.Scenario {
	return func(w *einmaltest.World) {
		if len(allow) > 0 {
			w.AllowUnchecked(allow...)
		}
		w.Start(func(*einmaltest.Process) *einmal.Operator {
			op := einmal.New("tolerant.example.com", einmal.Applies(&corev1.Pod{}))
			einmal.For[corev1.ConfigMap](op).OnCreate("make", func(ctx context.Context, c *einmal.Change[corev1.ConfigMap]) error {
				pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: c.Object.Name}}
				pod.Spec.Containers = []corev1.Container{{Name: "main", Image: "example.com/main:1"}}
				pod.Spec.Tolerations = []corev1.Toleration{{Key: "dedicated", Operator: corev1.TolerationOpExists}}
				return c.Apply(ctx, pod)
			})
			return op
		})
		w.Advance(time.Second)
		w.Create(configNamed("one"))
		w.Advance(time.Minute)
	}
}

// A field that the API server in memory does not validate fails the run, which says how to allow it.
func TestAFieldThatIsNotCheckedFailsTheRun(t *testing.T) {
	finding := einmaltest.Search(t, tolerant())
	const remedy = `spec.tolerations is not checked here: the API server for tests does not validate it; ` +
		`allow it with World.AllowUnchecked("Pod.spec.tolerations"), or test it with StartCluster`
	if finding == nil || !strings.Contains(finding.String(), "apply pods default/one by make: ") || !strings.Contains(finding.String(), remedy) {
		t.Errorf("the finding is %v", finding)
	}
	einmaltest.Run(t, tolerant("Pod.spec.tolerations"))
}

// A path that names no field is refused.
func TestAPathThatNamesNoUncheckedFieldIsRefused(t *testing.T) {
	finding := einmaltest.Search(t, tolerant("Pot.spec.tolerations"))
	if finding == nil || !strings.Contains(finding.String(), `no kind "Pot" with unchecked fields, want one of`) {
		t.Errorf("the finding is %v", finding)
	}
}

// A world has what a real cluster creates in each namespace only where the scenario wants it.
func TestNamespacesAreFilledWhereTheScenarioWantsIt(t *testing.T) {
	for _, filled := range []bool{false, true} {
		einmaltest.Run(t, func(w *einmaltest.World) {
			if filled {
				w.FillNamespaces()
			}
			w.Install(func(*einmaltest.Process) *einmal.Operator { return einmal.New("idle.example.com") })
			w.Create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "new"}})
			w.Advance(time.Minute)
			for _, namespace := range []string{"default", "new"} {
				account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "default"}}
				if found := w.Get(account); found != filled {
					w.Errorf("ServiceAccount default in namespace %s: %t, want %t", namespace, found, filled)
				}
			}
		})
	}
}
