package einmaltest_test

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/einmaltest"
)

// How is one handler tested as a plain function, in microseconds? With a Change that has what the handler uses: here an object, and a client in
// memory. Whether a second run does harm is a question for Explore.
func ExampleNewChange() {
	warn := func(ctx context.Context, c *einmal.Change[certificate]) error {
		left := time.Until(c.Object.Status.Expires.Time)
		if left > 30*24*time.Hour {
			return nil
		}
		return c.Client.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Namespace: c.Object.Namespace, Name: "warning-" + c.Object.Name,
		}})
	}
	change := einmaltest.NewChange(newCertificate())
	change.Reason = einmal.ReasonTimer
	change.Client = fake.NewClientBuilder().Build()
	for _, days := range []int{60, 10} {
		change.Object.Status.Expires = &metav1.Time{Time: time.Now().AddDate(0, 0, days)}
		err := warn(context.Background(), change)
		var warnings corev1.ConfigMapList
		if err == nil {
			err = change.Client.List(context.Background(), &warnings, client.InNamespace("default"))
		}
		fmt.Println(days, "days left:", len(warnings.Items), "warnings", err)
	}
	// Output:
	// 60 days left: 0 warnings <nil>
	// 10 days left: 1 warnings <nil>
}
