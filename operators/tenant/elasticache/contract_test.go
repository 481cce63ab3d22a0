package elasticache_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/einmal-operators/einmal/credential"
	"github.com/einmal-operators/einmal/credential/credentialtest"
)

// Users of an ElastiCache keep what credential.User relies on, although each change takes time.
func TestUsersAreASystem(t *testing.T) {
	t.Parallel()
	tenants := &atomic.Int64{}
	credentialtest.SystemContract(t, func(t *testing.T) credentialtest.SystemSubject {
		t.Helper()
		w := newWorld(t, fmt.Sprintf("contract-%d", tenants.Add(1)))
		return credentialtest.SystemSubject{
			System: w.users, Owner: w.owner(), Username: w.username(),
			Admit: func(ctx context.Context, username string) error {
				_, err := w.users.ConvergeAccess(ctx, w.owner(), username)
				return err
			},
			Accepts: func(t *testing.T, record credential.Record) bool {
				t.Helper()
				return w.login(record.Username, record.Password) == nil
			},
		}
	})
}
