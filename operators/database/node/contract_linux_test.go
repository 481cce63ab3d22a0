package node

import (
	"context"
	"encoding/base64"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/einmal-operators/einmal/credential"
	"github.com/einmal-operators/einmal/einmaltest"
	"github.com/einmal-operators/einmal/internal/testkit/realnode"
	"github.com/einmal-operators/einmal/operators/database/engine"
	"github.com/einmal-operators/einmal/operators/database/postgres"
	"github.com/einmal-operators/einmal/operators/database/postgres/contract"
)

// realWorld has real servers for the contract, without an operator. It connects to them from the Pod of the client.
type realWorld struct {
	*started
	t         *testing.T
	client    string
	addresses []string
	password  credential.Password
}

// fulfilsTheContract ends the operator, and expects of the servers what the operator needs. The servers of the simulation do the same.
func (s *started) fulfilsTheContract(t *testing.T) {
	t.Helper()
	s.MustKubectl(t, "scale", "--namespace", "database-system", "deployment/database", "--replicas=0")
	s.MustKubectl(t, "wait", "pod", "--namespace", "database-system", "--all", "--for=delete", "--timeout=2m")
	text, err := base64.StdEncoding.DecodeString(s.MustKubectl(t, "get", "secret", "--namespace", "production", "orders-db-monitor", "--output", "jsonpath={.data.password}"))
	if err != nil {
		t.Fatal(err)
	}
	w := realWorld{started: s, t: t, client: process(t, "PGHOST=orders-db-rw", "sleep", "infinity"), password: credential.NewPassword(string(text))}
	for ordinal := range 2 {
		w.addresses = append(w.addresses, s.MustKubectl(t, "get", "pod", "--namespace", "production", fmt.Sprintf("orders-db-%d", ordinal), "--output", "jsonpath={.status.podIP}"))
	}
	contract.Run(t, w)
}

func (w realWorld) Server() engine.Replicated {
	return postgres.Client{Dial: func(ctx context.Context, _, address string) (net.Conn, error) {
		return realnode.DialAs(ctx, w.client, address)
	}}
}

func (w realWorld) Login(ordinal int) engine.Login {
	return engine.Login{Host: w.addresses[ordinal], Port: 5432, Database: "postgres", Username: "einmal_monitor", Password: w.password}
}

// Write returns where the record of the new row begins.
func (w realWorld) Write() string {
	location, err := w.psql(0, "select pg_current_wal_insert_lsn()")(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := w.psql(0, "create table written (n int)")(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	return strings.TrimSpace(location)
}

// End deletes the Pod of the primary. The next one waits for the operator.
func (w realWorld) End() { w.remove(w.t, "pod", "orders-db-0") }

func (w realWorld) Eventually(what string, attempt func(ctx context.Context) error) {
	einmaltest.Eventually(w.t, what, attempt)
}
