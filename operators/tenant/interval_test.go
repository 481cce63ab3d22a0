package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/einmal-operators/einmal/credential"
	"github.com/einmal-operators/einmal/einmaltest"
)

// failing is a store that answers each read with an error.
type failing struct {
	credential.Store

	err   error
	reads *readings
}

// readings are the times at which a store was read.
type readings struct {
	mu    sync.Mutex
	times []time.Time
}

func (r *readings) add() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.times = append(r.times, time.Now())
}

func (r *readings) all() []time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.times)
}

func (f failing) Read(ctx context.Context, name string, owner credential.Owner, from int) (credential.Found, error) {
	f.reads.add()
	if f.err != nil {
		return credential.Found{}, f.err
	}
	return f.Store.Read(ctx, name, owner, from)
}

// However long something fails or settles, and whatever is wiped, a tenant is looked at within its probeInterval: what comes back may accept what
// was revoked in the meantime.
func TestATenantIsLookedAtWithinItsInterval(t *testing.T) {
	t.Parallel()
	for what, err := range map[string]error{
		"ready": nil, "unreachable": errors.New("no answer"), "settling": credential.ErrUnsettled, "blocked": credential.ErrInvalid,
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			einmaltest.Run(t, func(w *einmaltest.World) {
				noted := &readings{}
				l := begin(w, func(store credential.Store) credential.Store { return failing{store, err, noted} })
				w.AllowUnfinished()
				l.Apply(`{apiVersion: tenant.einmal.dev/v1, kind: Tenant, metadata: {name: acme},
					spec: {backendRef: {name: local}, apps: [{name: web}], credentials: {probeInterval: 10s}}}`)
				for i := range 8 {
					l.Advance(time.Duration(i) * 7 * time.Second)
					l.Patch(tenantOf("acme"), fmt.Sprintf(`{"metadata":{"annotations":null,"finalizers":null,"labels":{"wiped":"%d"}}}`, i))
				}
				l.Advance(10 * time.Minute)
				reads := noted.all()
				for i := range reads[1:] {
					if gap := reads[i+1].Sub(reads[i]); gap > 12*time.Second {
						w.Errorf("there is no look for %s, after %d reads", gap, i+1)
						return
					}
				}
			})
		})
	}
}
