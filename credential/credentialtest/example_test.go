package credentialtest_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/credential"
	"github.com/einmal-operators/einmal/credential/credentialtest"
	"github.com/einmal-operators/einmal/einmaltest"
)

// Who was promised to be let in is locked out by the next password, as a user has one here.
func ExampleUsers() {
	users := &credentialtest.Users{}
	system, owner := credentialtest.Session{Users: users}, credential.Owner{Operator: "apps.example.com", Namespace: "default", Name: "one"}
	first := credential.Record{Username: "one", Password: credential.NewPassword("of spring"), Generation: 1}
	second := credential.Record{Username: "one", Password: credential.NewPassword("of summer"), Generation: 2}

	fmt.Println(system.Create(context.Background(), owner, first))
	users.Promise(first, time.Now().Add(time.Hour))
	fmt.Println(system.Set(context.Background(), owner, credential.Assignment{Record: second}))
	fmt.Println(users.Accepts(first), users.Accepts(second), users.Broken())

	// Output:
	// <nil>
	// <nil>
	// false true [give a password to one locks out one]
}

// What happens around the operator: an administrator creates a user of that name by hand, and the system restarts without its users.
func ExampleUsers_Plant() {
	users := &credentialtest.Users{}
	system, owner := credentialtest.Session{Users: users}, credential.Owner{Operator: "apps.example.com", Namespace: "default", Name: "one"}
	state := func(password string) credential.State {
		found, err := system.Observe(context.Background(), owner, "one", credential.NewPassword(password))
		if err != nil {
			fmt.Println(err)
		}
		return found
	}
	users.Plant("one", credential.Owner{}, credential.NewPassword("by hand"))
	fmt.Println(state(""), state("by hand"))
	users.Plant("one", owner, credential.NewPassword("ours"))
	fmt.Println(state("ours"), state("another"), users.Tried())
	users.Lose("one")
	fmt.Println(state(""))

	// Output:
	// unmarked unmarked
	// accepted refused 2
	// absent
}

type appSpec struct {
	Rotation string `json:"rotation,omitempty"`
}

type appStatus struct {
	einmal.Records `json:",inline"`
}

type app = einmal.Resource[appSpec, appStatus]

// declareApps declares an operator that gives each app a user, and rotates its credential when the app asks for that.
func declareApps(op *einmal.Operator, system credential.System, inPlace bool) {
	einmal.For[app](op, einmal.GVK("example.com", "v1", "App")).Reconcile("user", func(ctx context.Context, c *einmal.Change[app]) error {
		name := c.Object.Name
		outcome, err := credential.User{
			Once: credential.Once{
				Store: credential.Secrets{Client: c.Client, Namespace: c.Object.Namespace}, Name: name + "-db",
				Owner:    credential.Owner{Operator: "apps.example.com", Namespace: c.Object.Namespace, Name: name},
				Username: name, Request: c.Object.Spec.Rotation,
			},
			System: system, Overlap: time.Hour, InPlace: inPlace,
		}.Converge(ctx)
		if err == nil && !outcome.Until.IsZero() {
			return einmal.RequeueAfter(time.Until(outcome.Until) + time.Second)
		}
		return err
	})
}

// aRotation is an app that asks for a rotation. Its first credential is accepted for an hour from then on, after each write, and not
// for ever.
func aRotation(inPlace bool) einmaltest.Scenario {
	return func(w *einmaltest.World) {
		users := &credentialtest.Users{Room: 2}
		w.Start(func(p *einmaltest.Process) *einmal.Operator {
			op := einmal.New("apps.example.com", einmal.Permissions(&corev1.Secret{}, "get", "create", "update"))
			declareApps(op, credentialtest.Session{Users: users, Effect: p.IdempotentEffect}, inPlace)
			return op
		})
		one := &app{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "one"}}
		w.Create(one)
		w.Advance(10 * time.Minute)
		first := credential.Record{Username: "one", Password: users.Had("one")[0]}
		users.Promise(first, time.Now().Add(time.Hour))
		w.Patch(one, `{"spec":{"rotation":"spring"}}`)
		w.Advance(2 * time.Hour)
		if broken := users.Broken(); len(broken) > 0 || users.Accepts(first) {
			w.Errorf("%v; in the end the first is accepted: %t", broken, users.Accepts(first))
		}
	}
}

// crashes leaves out what does not come between the store and the system.
func crashes() einmaltest.Option {
	return einmaltest.Without(einmaltest.Answers, einmaltest.Outages, einmaltest.Events, einmaltest.StaleCache, einmaltest.OtherWriters,
		einmaltest.Wipes, einmaltest.Replicas, einmaltest.Standby, einmaltest.Clocks)
}

// No client is locked out, wherever the process crashes.
func TestWhateverGoesWrongARotationKeepsPromises(t *testing.T) {
	einmaltest.Explore(t, aRotation(false), crashes())
}

// The negative control: a rotation that has no overlap is found.
func TestARotationThatLocksOutIsFound(t *testing.T) {
	finding := einmaltest.Search(t, aRotation(true), crashes())
	if finding == nil || !strings.Contains(finding.String(), "give a password to one locks out one") {
		t.Errorf("it is not found, or something else is: %v", finding)
	}
}
