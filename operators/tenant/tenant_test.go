package main

import (
	"testing"

	v1 "github.com/einmal-operators/einmal/operators/tenant/api/v1"
)

// TestOperator tells the life of a tenant on real servers.
func TestOperator(t *testing.T) {
	s := startStage(t)
	running := s.start(t)
	s.make(t, tenantOf("acme"))
	tenant := s.awaitPhase(t, "acme", v1.Ready)
	s.works(t, "acme", "web")
	t.Logf("%+v", tenant.Status)
	running.Stop(t)
	t.Log(running.Log())
}
