package redis_test

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/einmal-operators/einmal/credential"
	"github.com/einmal-operators/einmal/credential/credentialtest"
)

// Users of two nodes keep what credential.User relies on.
func TestUsersAreASystem(t *testing.T) {
	t.Parallel()
	f, users := newFixture(t), &atomic.Int64{}
	credentialtest.SystemContract(t, func(t *testing.T) credentialtest.SystemSubject {
		t.Helper()
		return credentialtest.SystemSubject{
			System: f.users, Owner: owner(), Username: fmt.Sprintf("contract-%d", users.Add(1)),
			Accepts: func(t *testing.T, record credential.Record) bool {
				t.Helper()
				for _, server := range f.servers {
					client := server.Client(record.Username, record.Password.Reveal())
					err := client.Ping(t.Context()).Err()
					_ = client.Close()
					if err != nil {
						return false
					}
				}
				return true
			},
		}
	})
}
