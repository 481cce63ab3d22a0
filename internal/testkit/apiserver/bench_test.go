package apiserver_test

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal/internal/testkit/apiserver"
)

func BenchmarkStart(b *testing.B) {
	parsed := definitions(b)
	for b.Loop() {
		start(b, apiserver.WithDefinitions(parsed)).Close()
	}
}

func BenchmarkPatchStatus(b *testing.B) {
	server := start(b, apiserver.WithDefinitions(definitions(b)))
	defer server.Close()
	api := clientOf(b, server)
	create(b, api, thing("a"))
	for n := 0; b.Loop(); n++ {
		change := fmt.Appendf(nil, `[{"op":"add","path":"/status","value":{"visits":%d}}]`, n)
		if err := api.Status().Patch(b.Context(), thing("a"), client.RawPatch(types.JSONPatchType, change)); err != nil {
			b.Fatal(err)
		}
	}
}
