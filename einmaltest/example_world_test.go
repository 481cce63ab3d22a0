package einmaltest_test

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/einmaltest"
)

// Does the operator handle objects that are older than its first start? Install creates its kinds without starting it.
func TestAnOlderCertificateIsIssued(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		outside := newAuthority()
		operator := func(p *einmaltest.Process) *einmal.Operator { return certificates(session{outside, p}) }
		w.Install(operator)
		w.Create(newCertificate())
		w.Advance(time.Hour)
		w.Start(operator)
		w.Advance(time.Minute)
		if outside.valid() != 1 {
			w.Errorf("%d documents, want 1", outside.valid())
		}
	})
}

// renewed is issued by the previous version of the operator, which had no timer, or by the current one. An update at any time issues nothing more.
func renewed(w *einmaltest.World) {
	outside := newAuthority()
	w.UpgradeFrom(func(p *einmaltest.Process) *einmal.Operator {
		op := einmal.New("certificates.example.com", einmal.StateNamespace("default"))
		kind := einmal.For[certificate](op, einmal.GVK("example.com", "v1", "Certificate"))
		kind.OnCreate("issue", issueFrom(session{outside, p}))
		kind.OnDelete("revoke", func(_ context.Context, c *einmal.Change[certificate]) error {
			return session{outside, p}.revoke(c.Object.Spec.Domain)
		})
		return op
	})
	w.Start(func(p *einmaltest.Process) *einmal.Operator { return certificates(session{outside, p}) })
	w.Create(newCertificate())
	w.Advance(10 * time.Minute)
	w.Outcome("valid", outside.valid())
}

// Is a rolling update of the operator safe at each moment? UpgradeFrom says what the previous version is.
func TestAnUpdateIssuesNothing(t *testing.T) {
	einmaltest.Explore(t, renewed, einmaltest.Only(einmaltest.Updates))
}

// The finalizer of another controller keeps an object beyond the end of the run. AllowDeleting says that this is expected.
func TestACertificateIsRevokedBeforeItIsGone(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		w.AllowDeleting()
		outside := newAuthority()
		w.Start(func(p *einmaltest.Process) *einmal.Operator { return certificates(session{outside, p}) })
		kept := newCertificate()
		kept.Finalizers = []string{"example.com/archive"}
		w.Create(kept)
		w.Advance(10 * time.Minute)
		w.Delete(kept)
		w.Advance(10 * time.Minute)
		if outside.valid() != 0 || !w.Get(kept) {
			w.Errorf("%d documents are valid, want none while another controller keeps the object", outside.valid())
		}
	})
}

// What does a handler do without a permission? By default, a refused request fails the run. AllowForbidden lets it go on.
func TestARefusedRequestIsRetried(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		w.AllowForbidden()
		w.AllowUnfinished("read-key")
		refused := 0
		w.Start(func(*einmaltest.Process) *einmal.Operator {
			op := einmal.New("certificates.example.com") // Without einmal.Permissions(&corev1.Secret{}, "get").
			kind := einmal.For[certificate](op, einmal.GVK("example.com", "v1", "Certificate"))
			kind.OnCreate("read-key", func(ctx context.Context, c *einmal.Change[certificate]) error {
				err := c.Client.Get(ctx, types.NamespacedName{Namespace: "default", Name: "key"}, &corev1.Secret{})
				if apierrors.IsForbidden(err) {
					refused++
				}
				return err
			}, einmal.MaxAttempts(3))
			return op
		})
		w.Create(newCertificate())
		w.Advance(10 * time.Minute)
		if refused != 3 {
			w.Errorf("%d requests were refused, want 3", refused)
		}
	})
}

// A real cluster has a ConfigMap in each namespace. FillNamespaces creates it, so that a handler of ConfigMaps meets it.
func TestTheConfigMapOfTheClusterIsLeftAlone(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		w.FillNamespaces()
		var handled []string
		w.Start(func(*einmaltest.Process) *einmal.Operator {
			op := einmal.New("settings.example.com")
			settings := einmal.For[corev1.ConfigMap](op)
			settings.OnCreate("load", func(_ context.Context, c *einmal.Change[corev1.ConfigMap]) error {
				handled = append(handled, c.Object.Name)
				return nil
			}, einmal.Not(einmal.When(func(one *corev1.ConfigMap) bool { return one.Name == "kube-root-ca.crt" })))
			return op
		})
		w.Advance(time.Minute)
		if len(handled) > 0 {
			w.Errorf("handled %v, want nothing", handled)
		}
	})
}

// A tool for backups restores an object and its child into a new cluster. Does the operator use the child that there is? It does when a user says that the
// object continues the earlier one.
func TestARestoredCertificateKeepsItsCopy(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		w.Start(func(*einmaltest.Process) *einmal.Operator {
			op := einmal.New("certificates.example.com")
			kind := einmal.For[certificate](op, einmal.GVK("example.com", "v1", "Certificate"))
			kind.Reconcile("copy", func(ctx context.Context, c *einmal.Change[certificate]) error {
				return c.Apply(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: c.Object.Name}, Data: map[string]string{"domain": c.Object.Spec.Domain}})
			}, einmal.Applies(&corev1.ConfigMap{}))
			return op
		})
		one, copied := newCertificate(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "one"}}
		w.Create(one)
		w.Advance(time.Minute)
		former := string(one.UID)
		w.Stop()
		w.RestoreFromBackup(copied, one)
		w.Patch(one, `{"metadata":{"annotations":{"certificates.example.com/former-uid":"`+former+`"}}}`)
		w.Restart()
		w.Advance(time.Minute)
		if w.Get(copied); !metav1.IsControlledBy(copied, one) {
			w.Errorf("the copy has the owner references %v", copied.OwnerReferences)
		}
	})
}
