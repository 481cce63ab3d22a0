package virtual_test

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/test/fixture"
)

// A pod without finalizers exists for as long as its grace period runs: what its daemon changes until then is written.
func TestADaemonWritesInTheGracePeriodOfItsPod(t *testing.T) {
	var synced error
	virtually(t, &fixture.Log{}, func(op *einmal.Operator) {
		einmal.For[corev1.Pod](op).Daemon("watch", func(ctx context.Context, c *einmal.Change[corev1.Pod]) error {
			<-c.Stopping()
			for _, step := range []string{"begun", "half", "done"} {
				<-time.After(2 * time.Second)
				metav1.SetMetaDataLabel(&c.Object.ObjectMeta, "drained", step)
				synced = errors.Join(synced, c.Sync(ctx))
			}
			return nil
		}, einmal.WithoutFinalizer(), einmal.StopGrace(15*time.Second))
	}, func(t *testing.T, w *virtualWorld) {
		one := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "one"},
			Spec:       corev1.PodSpec{NodeName: "node", Containers: []corev1.Container{{Name: "main", Image: "main"}}},
		}
		fixture.Must(t, w.User.Create(t.Context(), one))
		w.Pass(time.Minute)
		fixture.Must(t, w.User.Delete(t.Context(), one))
		w.Pass(10 * time.Second)
		fixture.Must(t, w.User.Get(t.Context(), client.ObjectKeyFromObject(one), one), synced)
		if one.Labels["drained"] != "done" || len(one.Finalizers) > 0 {
			t.Errorf("labels %v, finalizers %v", one.Labels, one.Finalizers)
		}
	})
}
