package einmaltest_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/einmaltest"
)

// brokenEffects lists operators that do something outside of the cluster once too often, or where they must not.
func brokenEffects() []broken {
	secrets := einmal.Permissions(&corev1.Secret{}, "list", "get")
	return []broken{
		{
			name: "a card that is charged twice, with the same answer",
			scenario: configHandled(func(_ context.Context, p *einmaltest.Process, c *einmal.Change[corev1.ConfigMap]) error {
				return p.Effect("charge "+c.Object.Name, func() (any, error) { return "100 EUR", nil })
			}),
			says: []string{"crash", "effect charge one: it happened 2 times, and once without faults"},
		},
		{
			name: "a mail that is sent twice, without an answer",
			scenario: configHandled(func(_ context.Context, p *einmaltest.Process, c *einmal.Change[corev1.ConfigMap]) error {
				return p.Effect("mail "+c.Object.Name, func() (any, error) { return nil, nil })
			}),
			says: []string{"effect mail one: it happened 2 times"},
		},
		{
			name: "a list that has failed taken for an empty one",
			scenario: configHandled(func(ctx context.Context, p *einmaltest.Process, c *einmal.Change[corev1.ConfigMap]) error {
				users := &corev1.SecretList{}
				_ = c.Client.List(ctx, users, client.InNamespace(c.Object.Namespace))
				if len(users.Items) > 0 {
					return nil
				}
				return p.Effect("drop the database of "+c.Object.Name, func() (any, error) { return nil, nil })
			}, secrets),
			says: []string{"list secrets", "effect drop the database of one: it happened"},
		},
		{
			name:     "harm at the third attempt, which no single fault leads to",
			scenario: configHandled(harmAtTheThird, secrets),
			options:  []einmaltest.Option{einmaltest.Only(einmaltest.Answers, einmaltest.Recovery)},
			says:     []string{"; refused: get secrets default/known by handle #2", "effect give up one: it happened once, and never without faults"},
		},
		{
			name: "a mail that is sent without Effect, and counted in an outcome", scenario: unwrappedMail,
			says: []string{"mails: the outcome differs"},
		},
		{
			name: "a mail for each of three objects that is sent for two of them", scenario: mailsForThree,
			options: []einmaltest.Option{einmaltest.Only(einmaltest.Crashes)},
			says:    []string{"crash", "effect mail the team: it happened 2 times, and 3 times without faults: a handler must not record that it is done before it is done"},
		},
		{
			name: "a storm of writes after one that was denied", scenario: configHandled(stormAfterADenial),
			options: []einmaltest.Option{einmaltest.Only(einmaltest.Refusals)},
			says:    []string{"denied by a webhook: patch configmaps default/one", "patch configmaps default/one: written ", "want at most "},
		},
		{name: "two objects that take the same number", scenario: twoNumbers, says: []string{"requests and effects of handlers take 1s", "numbers: the outcome differs"}},
	}
}

// mailsForThree sends a mail to the same team for each of three objects. It notes that it has sent it before it sends it.
func mailsForThree(w *einmaltest.World) {
	configHandled(func(ctx context.Context, p *einmaltest.Process, c *einmal.Change[corev1.ConfigMap]) error {
		sent := &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: c.Object.Name + "-sent"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
		}
		if err := c.Client.Create(ctx, sent); err != nil {
			return client.IgnoreAlreadyExists(err)
		}
		return p.Effect("mail the team", func() (any, error) { return nil, nil })
	}, einmal.Permissions(&corev1.Service{}, "create"))(w)
	w.Create(configNamed("two"), configNamed("three"))
	w.Advance(10 * time.Minute)
}

// stormAfterADenial fails twenty times after its first attempt, and writes each time.
func stormAfterADenial(_ context.Context, _ *einmaltest.Process, c *einmal.Change[corev1.ConfigMap]) error {
	metav1.SetMetaDataAnnotation(&c.Object.ObjectMeta, "example.com/attempt", fmt.Sprint(c.Attempt))
	if c.Attempt > 1 && c.Attempt < 20 {
		return einmal.RetryAfter(time.Second, errors.New("not yet"))
	}
	return nil
}

// unwrappedMail sends a mail outside of Effect. It is no point, so that a crash comes before or after it by the requests around it.
func unwrappedMail(w *einmaltest.World) {
	mails := make(chan string, 100)
	configHandled(func(_ context.Context, _ *einmaltest.Process, c *einmal.Change[corev1.ConfigMap]) error {
		mails <- c.Object.Name
		return nil
	})(w)
	w.Outcome("mails", len(mails))
}

// twoNumbers handles two objects, one after the other. Each reads how many numbers are taken, and takes the next one.
func twoNumbers(w *einmaltest.World) {
	taken, numbers := 0, map[string]int{}
	configHandled(func(_ context.Context, p *einmaltest.Process, c *einmal.Change[corev1.ConfigMap]) error {
		next := 0
		read := func() (any, error) { next = taken + 1; return nil, nil }
		if err := p.IdempotentEffect("read for "+c.Object.Name, read); err != nil {
			return err
		}
		return p.IdempotentEffect("take for "+c.Object.Name, func() (any, error) {
			taken, numbers[c.Object.Name] = next, next
			return nil, nil
		})
	})(w)
	w.Create(configNamed("two"))
	w.Advance(500 * time.Millisecond)
	w.Create(configNamed("three"))
	w.Advance(10 * time.Minute)
	w.Outcome("numbers", numbers["two"] == numbers["three"])
}
