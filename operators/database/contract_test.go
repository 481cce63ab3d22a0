package main

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/einmal-operators/einmal/credential"
	"github.com/einmal-operators/einmal/einmaltest"
	"github.com/einmal-operators/einmal/operators/database/engine"
	"github.com/einmal-operators/einmal/operators/database/postgres/contract"
)

// modelWorld has the servers of the model for the contract.
type modelWorld struct {
	*testing.T
	w *einmaltest.World
	n *modelNode
}

// The servers of the simulation do what TestADatabaseRunsOnARealNode expects of real ones.
func TestTheModelOfServersFulfilsTheContract(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		n := replicated(w, 2)
		w.Kill()
		contract.Run(t, modelWorld{t, w, n})
	})
}

func (m modelWorld) Server() engine.Replicated { return m.n }

func (m modelWorld) Login(ordinal int) engine.Login {
	secret := &corev1.Secret{ObjectMeta: in("orders-db-monitor")}
	m.w.Get(secret)
	return engine.Login{
		Host: fmt.Sprintf("orders-db-%d.orders-db-pods.default.svc", ordinal), Username: string(secret.Data["username"]),
		Password: credential.NewPassword(string(secret.Data["password"])),
	}
}

func (m modelWorld) Write() string {
	m.n.mu.Lock()
	defer m.n.mu.Unlock()
	m.n.write(m.n.servers["orders-db-0"].data)
	return fmt.Sprintf("0/%X", m.n.written)
}

func (m modelWorld) End() {
	m.n.mu.Lock()
	defer m.n.mu.Unlock()
	delete(m.n.servers, "orders-db-0")
}

func (m modelWorld) Eventually(what string, attempt func(ctx context.Context) error) {
	for range 60 {
		if attempt(m.w.Context()) == nil {
			return
		}
		m.w.Advance(time.Second)
	}
	m.w.Fatalf("%s: %v", what, attempt(m.w.Context()))
}
