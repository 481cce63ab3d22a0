package credential_test

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/credential"
)

type appSpec struct {
	Plan string `json:"plan,omitempty"`
}

type appStatus struct {
	einmal.Records `json:",inline"`

	// Credentials is the name of the Secret.
	Credentials string `json:"credentials,omitempty"`
}

type app = einmal.Resource[appSpec, appStatus]

// declareApps declares an operator that gives each app a database user with a password that is generated once.
func declareApps(op *einmal.Operator, users credential.System) {
	apps := einmal.For[app](op, einmal.GVK("example.com", "v1", "App"))
	apps.Reconcile("user", func(ctx context.Context, c *einmal.Change[app]) error {
		user := credential.User{Once: userOf(c), System: users}
		if _, err := user.Converge(ctx); credential.Blocked(err) {
			return einmal.Permanent(err) // A person has to act. Nothing was overwritten.
		} else if err != nil {
			return err // Einmal retries. Nothing was decided.
		}
		c.Object.Status.Credentials = user.Name
		return nil
	})
}

// userOf returns the credential of an app. It depends only on the app's name, so it does not change when other state is lost.
func userOf(c *einmal.Change[app]) credential.Once {
	return credential.Once{
		Store:    credential.Secrets{Client: c.Client, Namespace: c.Object.Namespace},
		Name:     c.Object.Name + "-db",
		Owner:    credential.Owner{Operator: "apps.example.com", Namespace: c.Object.Namespace, Name: c.Object.Name},
		Username: c.Object.Name,
	}
}

// A password is generated once for each app, whatever happens to the app, its status or the operator.
func ExampleOnce_Ensure() {
	op := einmal.New("apps.example.com", einmal.Permissions(&corev1.Secret{}, "get", "create", "update"))
	declareApps(op, nil)
	// op.Main()

	// Output:
}
