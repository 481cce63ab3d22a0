package einmal_test

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/einmaltest"
)

// ClaimSpec is the desired state. It and ClaimStatus make a kind without generated code.
type ClaimSpec struct {
	Rooms int `json:"rooms"`
}

// ClaimStatus is the observed state.
type ClaimStatus struct {
	einmal.Records `json:",inline"`

	Room string `json:"room,omitempty"`
}

type (
	// Claim is the kind.
	Claim = einmal.Resource[ClaimSpec, ClaimStatus]
	// ClaimList is a list of claims.
	ClaimList = einmal.ResourceList[ClaimSpec, ClaimStatus]
)

// A handler of a Resource needs the other objects of its kind: here, to assign no more rooms than there are. Which type does their list have? It is a
// ResourceList of the same structs, which For has registered. The list comes from the API server. An Index is faster if there are many objects.
func ExampleResourceList() {
	const rooms = 3
	assign := func(ctx context.Context, c *einmal.Change[Claim]) error {
		var all ClaimList
		if err := c.Client.List(ctx, &all, client.InNamespace(c.Object.Namespace)); err != nil {
			return err
		}
		wanted := 0
		for i := range all.Items {
			wanted += all.Items[i].Spec.Rooms
		}
		if wanted > rooms {
			return einmal.Permanent(fmt.Errorf("%d rooms are claimed, there are %d", wanted, rooms))
		}
		return nil
	}
	op := einmal.New("claims.example.com")
	einmal.For[Claim](op, einmal.GVK("example.com", "v1", "Claim")).OnCreate("assign", assign)
	// op.Main()

	claim := func(name string) *Claim {
		return &Claim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: ClaimSpec{Rooms: 2}}
	}
	change := einmaltest.NewChange(claim("one")) // As a test calls the handler.
	change.Client = fakeClient(op.Scheme(), claim("one"))
	fmt.Println(assign(context.Background(), change))
	change.Client = fakeClient(op.Scheme(), claim("one"), claim("two"))
	fmt.Println(assign(context.Background(), change))
	// Output:
	// <nil>
	// 4 rooms are claimed, there are 3
}
