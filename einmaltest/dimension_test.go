package einmaltest_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/einmaltest"
)

// found is an operator with a bug that one dimension alone finds.
type found struct {
	by       einmaltest.Dimension
	scenario einmaltest.Scenario
	says     string
}

// TestEachDimensionFindsItsBug leaves all dimensions out but one.
func TestEachDimensionFindsItsBug(t *testing.T) {
	for _, test := range eachDimension() {
		t.Run(string(test.by), func(t *testing.T) {
			t.Parallel()
			finding := einmaltest.Search(t, test.scenario, einmaltest.Only(test.by))
			if finding == nil || finding.Schedule == "nothing goes wrong" || !strings.Contains(finding.String(), test.says) {
				t.Errorf("the finding is %v, want %q", finding, test.says)
			}
		})
	}
}

func eachDimension() []found {
	charge := configHandled(func(_ context.Context, p *einmaltest.Process, c *einmal.Change[corev1.ConfigMap]) error {
		return p.Effect("charge "+c.Object.Name, func() (any, error) { return nil, nil })
	})
	return []found{
		{einmaltest.Crashes, charge, "effect charge one: it happened 2 times"},
		{einmaltest.Answers, charge, "effect charge one: it happened 2 times"},
		{einmaltest.Hangs, charge, "effect charge one: it happened 2 times"},
		{einmaltest.Refusals, configHandled(harmAtTheThird, einmal.Permissions(&corev1.Secret{}, "get")), "effect give up one: it happened once, and never without faults"},
		{einmaltest.Users, configHandled(overwritten, einmal.Permissions(&corev1.ConfigMap{}, "update")), "edited"},
		{einmaltest.SlowCalls, twoNumbers, "numbers: the outcome differs"},
		{einmaltest.Children, rewrittenChild, "what others write is to stay"},
		{einmaltest.Updates, seeing(func(of *einmal.Kind[corev1.ConfigMap], see einmal.HandlerFunc[corev1.ConfigMap]) {
			of.OnResume("see", see)
		}), "effect see one: it happened"},
		{einmaltest.Restores, versionKept, "example.com/version"},
		{einmaltest.OlderRecords, configHandled(chargeAtTheSecond), "effect charge one: it happened 2 times"},
		{einmaltest.ForgedRecords, seeingAnnotations, "effect see one: it happened"},
		{einmaltest.Operators, seeing(func(of *einmal.Kind[corev1.ConfigMap], see einmal.HandlerFunc[corev1.ConfigMap]) {
			of.OnEvent("see", see)
		}), "effect see one: it happened"},
	}
}

// chargeAtTheSecond fails at first. Its second attempt charges, and does not use einmal.Effect.
func chargeAtTheSecond(_ context.Context, p *einmaltest.Process, c *einmal.Change[corev1.ConfigMap]) error {
	if c.Attempt == 1 {
		return einmal.RetryAfter(time.Minute, errors.New("not yet"))
	}
	return p.Effect("charge "+c.Object.Name, func() (any, error) { return nil, nil })
}

// harmAtTheThird gives up at its third attempt.
func harmAtTheThird(ctx context.Context, p *einmaltest.Process, c *einmal.Change[corev1.ConfigMap]) error {
	if c.Attempt == 3 {
		return p.Effect("give up "+c.Object.Name, func() (any, error) { return nil, nil })
	}
	return c.Client.Get(ctx, client.ObjectKey{Namespace: "default", Name: "known"}, &corev1.Secret{})
}

// overwritten writes the whole object, without the version that it has read.
func overwritten(ctx context.Context, p *einmaltest.Process, c *einmal.Change[corev1.ConfigMap]) error {
	if err := p.IdempotentEffect("ask for "+c.Object.Name, func() (any, error) { return nil, nil }); err != nil {
		return err
	}
	whole := c.Object.DeepCopy()
	whole.ResourceVersion, whole.Data = "", map[string]string{"answer": "yes"}
	return c.Client.Update(ctx, whole)
}

// seeing does something each time that it sees the object.
func seeing(declare func(*einmal.Kind[corev1.ConfigMap], einmal.HandlerFunc[corev1.ConfigMap])) einmaltest.Scenario {
	return func(w *einmaltest.World) {
		w.Start(func(p *einmaltest.Process) *einmal.Operator {
			op := einmal.New("broken.example.com")
			configs := einmal.For[corev1.ConfigMap](op)
			configs.OnCreate("note", func(context.Context, *einmal.Change[corev1.ConfigMap]) error { return nil })
			declare(configs, func(_ context.Context, c *einmal.Change[corev1.ConfigMap]) error {
				return p.Effect("see "+c.Object.Name, func() (any, error) { return nil, nil })
			})
			return op
		})
		w.Create(configNamed("one"))
		w.Advance(10 * time.Minute)
	}
}

// ledger is a kind with records in the status.
type ledger = einmal.Resource[struct {
	Size int `json:"size,omitempty"`
}, struct {
	einmal.Records `json:",inline"`
}]

// seeingAnnotations does something at each event of an object with its record in the status.
func seeingAnnotations(w *einmaltest.World) {
	w.Start(func(p *einmaltest.Process) *einmal.Operator {
		op := einmal.New("broken.example.com")
		ledgers := einmal.For[ledger](op, einmal.GVK("broken.example.com", "v1", "Ledger"))
		ledgers.OnCreate("note", func(context.Context, *einmal.Change[ledger]) error { return nil })
		ledgers.OnUpdate("size", func(context.Context, *einmal.Change[ledger]) error { return nil }, einmal.Fields("spec.size"))
		ledgers.OnEvent("see", func(_ context.Context, c *einmal.Change[ledger]) error {
			return p.Effect("see "+c.Object.Name, func() (any, error) { return nil, nil })
		})
		return op
	})
	one := &ledger{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "one"}}
	w.Create(one)
	w.Advance(10 * time.Minute)
	w.Patch(one, `{"spec":{"size":7}}`)
	w.Advance(10 * time.Minute)
}

// versionKept keeps the resource version of its object.
func versionKept(w *einmaltest.World) {
	w.Start(func(*einmaltest.Process) *einmal.Operator {
		op := einmal.New("broken.example.com")
		einmal.For[corev1.ConfigMap](op).OnCreate("note", func(_ context.Context, c *einmal.Change[corev1.ConfigMap]) error {
			c.Object.Annotations = map[string]string{"example.com/version": c.Object.ResourceVersion}
			return nil
		})
		return op
	})
	w.Create(configNamed("one"), configNamed("two"))
	w.Advance(10 * time.Minute)
}

// An operator of ConfigMaps that does all right passes in each dimension. The state of the other operator is in a ConfigMap, too.
func TestACorrectOperatorOfConfigMapsPassesEachDimension(t *testing.T) {
	finding := einmaltest.Search(t, configHandled(func(_ context.Context, p *einmaltest.Process, c *einmal.Change[corev1.ConfigMap]) error {
		return p.IdempotentEffect("set "+c.Object.Name, func() (any, error) { return nil, nil })
	}))
	if finding != nil {
		t.Errorf("the finding is %v", finding)
	}
}
