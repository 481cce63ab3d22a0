package einmaltest_test

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/einmaltest"
)

// notedFirst records in a Secret that it is done before it does it.
func notedFirst(do func(p *einmaltest.Process) error) einmaltest.Scenario {
	return configHandled(func(ctx context.Context, p *einmaltest.Process, c *einmal.Change[corev1.ConfigMap]) error {
		err := c.Client.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: c.Object.Name}})
		if apierrors.IsAlreadyExists(err) {
			return nil
		}
		if err != nil {
			return err
		}
		return do(p)
	}, einmal.Permissions(&corev1.Secret{}, "create"))
}

// An effect that a crash loses leaves the same objects as one that happened. Explore misses the effect.
func TestAnEffectThatIsLostIsFound(t *testing.T) {
	type sent struct{ ID string }
	nothing := func() (any, error) { return nil, nil }
	byHand := func(w *einmaltest.World) {
		w.Start(func(p *einmaltest.Process) *einmal.Operator {
			op := einmal.New("broken.example.com")
			einmal.For[corev1.ConfigMap](op).OnCreate("bill", func(ctx context.Context, c *einmal.Change[corev1.ConfigMap]) error {
				_, err := einmal.Effect(ctx, c, "invoice", einmal.RecoverByHand(func(context.Context) (sent, error) {
					return sent{}, p.Effect("invoice one", nothing)
				}))
				return err
			})
			return op
		})
		w.Advance(time.Minute) // Einmal asks a person about an object that is older than the process.
		w.Create(configNamed("one"))
		w.Advance(10 * time.Minute)
	}
	for _, test := range []struct {
		name     string
		scenario einmaltest.Scenario
		says     string
	}{
		{
			"a mail", notedFirst(func(p *einmaltest.Process) error { return p.Effect("mail one", nothing) }),
			"effect mail one: it happened never, and once without faults",
		},
		{
			"an idempotent effect", notedFirst(func(p *einmaltest.Process) error { return p.IdempotentEffect("set one", nothing) }),
			"effect set one: it happened never, and it did without faults",
		},
		{
			"an effect that waits for a person", byHand,
			"effect invoice one: it happened never, and once without faults: a handler must not record that it is done before it is done; " +
				"handlers that have failed for good and wait for a person: bill of ConfigMap default/one",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			finding := einmaltest.Search(t, test.scenario, einmaltest.Only(einmaltest.Crashes))
			if finding == nil || !strings.Contains(finding.String(), test.says) {
				t.Errorf("the finding is %v, want %q", finding, test.says)
			}
		})
	}
}

// A record that was lost while no process ran, and an object that a user has deleted, need no effects.
func TestAnEffectThatNeedNotHappenIsNotMissed(t *testing.T) {
	scenario := configHandled(func(_ context.Context, p *einmaltest.Process, c *einmal.Change[corev1.ConfigMap]) error {
		return p.IdempotentEffect("set "+c.Object.Name, func() (any, error) { return nil, nil })
	})
	if finding := einmaltest.Search(t, scenario, einmaltest.Only(einmaltest.Wipes, einmaltest.Users)); finding != nil {
		t.Errorf("the finding is %v", finding)
	}
}

// An object that is created and deleted while no process runs needs no effects.
func TestAnEffectOfAnObjectThatWasNeverSeenIsNotMissed(t *testing.T) {
	finding := einmaltest.Search(t, func(w *einmaltest.World) {
		w.Start(func(p *einmaltest.Process) *einmal.Operator {
			op := einmal.New("fine.example.com")
			einmal.For[corev1.ConfigMap](op).OnCreate("greet", func(_ context.Context, c *einmal.Change[corev1.ConfigMap]) error {
				return p.IdempotentEffect("greet "+c.Object.Name, func() (any, error) { return nil, nil })
			})
			return op
		})
		one := configNamed("one")
		w.Create(one)
		w.Advance(time.Minute)
		w.Delete(one)
		w.Advance(10 * time.Minute)
	}, einmaltest.Only(einmaltest.Crashes))
	if finding != nil {
		t.Errorf("the finding is %v", finding)
	}
}
