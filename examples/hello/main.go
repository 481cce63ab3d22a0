// Hello is an operator of one file: for each Hello it keeps a ConfigMap with a greeting.
package main

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/einmal-operators/einmal"
)

type helloSpec struct {
	Name string `json:"name"`
}

type helloStatus struct {
	einmal.Records `json:",inline"`

	Greeting string `json:"greeting,omitempty"`
}

type hello = einmal.Resource[helloSpec, helloStatus]

func main() {
	op := einmal.New("hello.example.com", einmal.Applies(&corev1.ConfigMap{}))
	hellos := einmal.For[hello](op, einmal.GVK("example.com", "v1", "Hello"))
	hellos.OnCreate("greet", greet)
	hellos.OnUpdate("greet-again", greet, einmal.Fields("spec.name"))
	op.Main()
}

func greet(ctx context.Context, c *einmal.Change[hello]) error {
	c.Object.Status.Greeting = "Hello, " + c.Object.Spec.Name + "!"
	greeting := &corev1.ConfigMap{Data: map[string]string{"greeting": c.Object.Status.Greeting}}
	greeting.Name = c.Object.Name
	return c.Apply(ctx, greeting)
}
