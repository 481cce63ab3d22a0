package contract_test

import (
	"testing"

	"github.com/einmal-operators/einmal/internal/testkit/apiserver"
	"github.com/einmal-operators/einmal/internal/testkit/cluster"
	"github.com/einmal-operators/einmal/test/contract"
)

func TestContract(t *testing.T) {
	t.Parallel()
	contract.Run(t, func(t *testing.T) contract.Server {
		t.Helper()
		server, err := apiserver.New(apiserver.WithNamespaceContent())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(server.Close)
		return contract.Server{Config: server.Config()}
	})
}

func TestContractOfTheRealServer(t *testing.T) {
	t.Parallel()
	contract.Run(t, func(t *testing.T) contract.Server {
		t.Helper()
		return contract.Server{Config: cluster.Start(t).Config}
	})
}
