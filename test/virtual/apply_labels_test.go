package virtual_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/einmaltest"
	"github.com/einmal-operators/einmal/test/fixture"
)

// Labels by which tools track the owners of these tests.
const (
	instanceLabel = "app.kubernetes.io/instance"
	applySetLabel = "applyset.kubernetes.io/part-of"
)

// trackedWidget returns a Widget that belongs to an apply set of kubectl and to an application of Argo CD.
func trackedWidget(name string) *fixture.Widget {
	widget := fixture.NewWidget(name)
	widget.Labels = map[string]string{"team": "a", "example.com/tier": "gold", instanceLabel: "shop", applySetLabel: "applyset-of-shop-v1"}
	return widget
}

// Apply copies no label of the owner, only those that CopyLabels names. A pattern matches no tracking label without CopyTrackingLabels.
func TestApplyCopiesTheLabelsThatAreNamed(t *testing.T) {
	all := trackedWidget("one").Labels
	for name, test := range map[string]struct {
		options []einmal.ApplyOption
		want    map[string]string
	}{
		"none":          {nil, map[string]string{"own": "yes"}},
		"key":           {[]einmal.ApplyOption{einmal.CopyLabels("team", "absent")}, map[string]string{"own": "yes", "team": "a"}},
		"beginning":     {[]einmal.ApplyOption{einmal.CopyLabels("example.com/*")}, map[string]string{"own": "yes", "example.com/tier": "gold"}},
		"two-options":   {[]einmal.ApplyOption{einmal.CopyLabels("tea*"), einmal.CopyLabels("example.com/tier")}, map[string]string{"own": "yes", "team": "a", "example.com/tier": "gold"}},
		"all":           {[]einmal.ApplyOption{einmal.CopyLabels("*")}, map[string]string{"own": "yes", "team": "a", "example.com/tier": "gold"}},
		"kubernetes":    {[]einmal.ApplyOption{einmal.CopyLabels("app.kubernetes.io/*")}, map[string]string{"own": "yes"}},
		"tracking-key":  {[]einmal.ApplyOption{einmal.CopyLabels(instanceLabel), einmal.CopyTrackingLabels()}, map[string]string{"own": "yes", instanceLabel: "shop"}},
		"with-tracking": {[]einmal.ApplyOption{einmal.CopyTrackingLabels(), einmal.CopyLabels("*")}, map[string]string{"own": "yes", "team": "a", "example.com/tier": "gold", instanceLabel: all[instanceLabel], applySetLabel: all[applySetLabel]}},
	} {
		t.Run(name, func(t *testing.T) {
			einmaltest.Run(t, func(w *einmaltest.World) {
				fixture.StartWidgets(w, func(widgets *einmal.Kind[fixture.Widget]) {
					widgets.Reconcile("keep", func(ctx context.Context, c *einmal.Change[fixture.Widget]) error {
						child := fixture.NewConfigMap("child", 1)
						child.Labels = map[string]string{"own": "yes"}
						return c.Apply(ctx, child, test.options...)
					})
				})
				w.Create(trackedWidget("one"))
				w.Advance(time.Minute)
				child := fixture.NewConfigMap("child", 1)
				w.Get(child)
				if diff := cmp.Diff(test.want, child.Labels); diff != "" {
					w.Errorf("labels of the child (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// A label that the owner loses leaves the child, and a value of the child's own is kept.
func TestACopiedLabelFollowsTheOwner(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		fixture.StartWidgets(w, func(widgets *einmal.Kind[fixture.Widget]) {
			widgets.Reconcile("keep", func(ctx context.Context, c *einmal.Change[fixture.Widget]) error {
				child := fixture.NewConfigMap("child", 1)
				child.Labels = map[string]string{"tier": "own"}
				return c.Apply(ctx, child, einmal.CopyLabels("*"))
			}, einmal.Fields("metadata.labels"))
		})
		w.Create(trackedWidget("one"))
		w.Advance(time.Minute)
		w.Patch(fixture.NewWidget("one"), `{"metadata":{"labels":{"team":"b","tier":"gold","example.com/tier":null}}}`)
		w.Advance(time.Minute)
		child := fixture.NewConfigMap("child", 1)
		w.Get(child)
		if diff := cmp.Diff(map[string]string{"team": "b", "tier": "own"}, child.Labels); diff != "" {
			w.Errorf("labels of the child (-want +got):\n%s", diff)
		}
	})
}

// An option that cannot be meant is a programming error, which names the option, the value and the remedy.
func TestLabelsThatCannotBeCopied(t *testing.T) {
	const remedy = "it can delete the child; leave out the key, or add einmal.CopyTrackingLabels()"
	copying := func(keys ...string) []einmal.ApplyOption { return []einmal.ApplyOption{einmal.CopyLabels(keys...)} }
	for want, options := range map[string][]einmal.ApplyOption{
		"option CopyLabels: must have at least one key, such as team or example.com/*, got none":                                                copying(),
		`option CopyLabels: "" is not a label key, nor the beginning of one followed by one asterisk; give keys such as team or example.com/*:`: copying("team", ""),
		`option CopyLabels: "a*b" is not a label key`:                                                                                           copying("a*b"),
		`option CopyLabels: "**" is not a label key`:                                                                                            copying("**"),
		`option CopyLabels: "/*" is not a label key`:                                                                                            copying("/*"),
		"option CopyLabels: by the label app.kubernetes.io/instance a tool finds the objects that it manages, and " + remedy:                    copying("*", instanceLabel),
		"option CopyLabels: by the label app.kubernetes.io/managed-by a tool finds":                                                             copying("app.kubernetes.io/managed-by"),
		"option CopyLabels: by the label applyset.kubernetes.io/* a tool finds":                                                                 copying("applyset.kubernetes.io/*"),
		"option CopyLabels: by the label argocd.argoproj.io/instance a tool finds":                                                              copying("argocd.argoproj.io/instance"),
		"option CopyLabels: by the label kustomize.toolkit.fluxcd.io/name a tool finds":                                                         copying("kustomize.toolkit.fluxcd.io/name"),
		"option CopyLabels: by the label helm.toolkit.fluxcd.io/n* a tool finds":                                                                copying("helm.toolkit.fluxcd.io/n*"),
		"option CopyTrackingLabels: copies nothing by itself; add einmal.CopyLabels or einmal.NestedLabels, or remove it":                       {einmal.CopyTrackingLabels()},
	} {
		log := fixture.NewLog(t)
		virtually(t, log, func(op *einmal.Operator) {
			einmal.For[fixture.Widget](op).Reconcile("keep", func(ctx context.Context, c *einmal.Change[fixture.Widget]) error {
				return c.Apply(ctx, fixture.NewConfigMap("child", 1), options...)
			})
		}, func(t *testing.T, w *virtualWorld) {
			fixture.Must(t, w.User.Create(t.Context(), fixture.NewWidget("one")))
			w.Pass(time.Minute)
		})
		fixture.ExpectLine(t, log, fixture.ProgrammingError, "error~"+want)
	}
}

// shopWindow are the children of one Widget: two Deployments, of which one selects its pods by a tracking label, a Job, and a Service that selects
// pods by a copied label and by a tracking label.
type shopWindow struct {
	web, selecting *appsv1.Deployment
	job            *batchv1.Job
	service        *corev1.Service
}

func newShopWindow(name string) shopWindow {
	var window shopWindow
	window.web, window.selecting = fixture.NewDeployment(name+"-web"), fixture.NewDeployment(name+"-selecting")
	window.selecting.Spec.Selector.MatchLabels[instanceLabel] = "shop"
	window.job = &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name + "-job"},
		Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "main", Image: "example.com/app"}},
		}}},
	}
	window.service = &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name + "-service"},
		Spec: corev1.ServiceSpec{
			Selector: map[string]string{"team": "a", instanceLabel: "shop"},
			Ports:    []corev1.ServicePort{{Port: 80}},
		},
	}
	return window
}

// startShops starts an operator that applies the children of each Widget with the options that are set then: nested for the Deployments and the Job, and
// plain for the Service.
func startShops(w *einmaltest.World, nested, plain *[]einmal.ApplyOption) {
	fixture.StartWidgets(w, func(widgets *einmal.Kind[fixture.Widget]) {
		widgets.Reconcile("keep", func(ctx context.Context, c *einmal.Change[fixture.Widget]) error {
			window := newShopWindow(c.Object.Name)
			return errors.Join(
				c.Apply(ctx, window.web, *nested...), c.Apply(ctx, window.selecting, *nested...),
				c.Apply(ctx, window.job, *nested...), c.Apply(ctx, window.service, *plain...))
		}, einmal.Owns[appsv1.Deployment](), einmal.Owns[batchv1.Job](), einmal.Owns[corev1.Service](),
			einmal.Applies(&appsv1.Deployment{}, &batchv1.Job{}, &corev1.Service{}))
	})
}

// expectLabels compares the labels of the children of a Widget, and those in their templates or, for the Service, of its selector. The labels that
// Kubernetes gives to the template of a Job are left out.
func expectLabels(w *einmaltest.World, name string, want map[string][2]map[string]string) {
	w.Helper()
	window := newShopWindow(name)
	for _, child := range []client.Object{window.web, window.selecting, window.job, window.service} {
		w.Get(child)
	}
	inJob := map[string]string{}
	for key, value := range window.job.Spec.Template.Labels {
		if _, ofKubernetes := window.job.Spec.Selector.MatchLabels[key]; !ofKubernetes && !slices.Contains([]string{"controller-uid", "job-name", batchv1.JobNameLabel}, key) {
			inJob[key] = value
		}
	}
	got := map[string][2]map[string]string{
		"web":       {window.web.Labels, window.web.Spec.Template.Labels},
		"selecting": {window.selecting.Labels, window.selecting.Spec.Template.Labels},
		"job":       {window.job.Labels, inJob},
		"service":   {window.service.Labels, window.service.Spec.Selector},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		w.Errorf("labels of %s (-want +got):\n%s", name, diff)
	}
}

// An earlier release copied all labels of the owner. The children lose them in one write each, and further calls send none. A label stays in a
// template if the selector beside it names it, or if the template is that of a Job. The API server would give such a Job the labels of its template if it
// had none, so it keeps one of another name. The selector of a Service stays as the handler sets it.
func TestChildrenLoseTheLabelsThatAnEarlierReleaseCopied(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		copied := trackedWidget("one").Labels
		with := func(labels map[string]string, key, value string) map[string]string {
			all := maps.Clone(labels)
			all[key] = value
			return all
		}
		untracked := map[string]string{"team": "a", "example.com/tier": "gold"}
		selector := newShopWindow("one").service.Spec.Selector
		plain := []einmal.ApplyOption{einmal.CopyLabels("*"), einmal.CopyTrackingLabels()}
		nested := append(slices.Clone(plain), einmal.NestedLabels("spec.template"))
		startShops(w, &nested, &plain)
		w.Create(trackedWidget("one"))
		w.Advance(time.Minute)
		expectLabels(w, "one", map[string][2]map[string]string{
			"web": {copied, with(copied, "app", "one-web")}, "selecting": {copied, with(copied, "app", "one-selecting")},
			"job": {copied, copied}, "service": {copied, selector},
		})

		before := len(w.Writes())
		nested, plain = []einmal.ApplyOption{einmal.NestedLabels("spec.template")}, nil
		w.Restart()
		w.Advance(time.Minute)
		// A child can trigger the handler again before the cache shows the next child. Then that one is sent twice, the second time without a change.
		written := slices.Compact(slices.Sorted(slices.Values(w.Writes()[before:])))
		wanted := []string{
			"apply deployments.apps default/one-selecting by keep", "apply deployments.apps default/one-web by keep",
			"apply jobs.batch default/one-job by keep", "apply services default/one-service by keep",
		}
		if diff := cmp.Diff(wanted, written); diff != "" {
			w.Errorf("writes of the new release (-want +got):\n%s", diff)
		}
		after := map[string][2]map[string]string{
			"web":       {nil, with(untracked, "app", "one-web")},
			"selecting": {nil, with(with(untracked, instanceLabel, "shop"), "app", "one-selecting")},
			"job":       {{batchv1.JobNameLabel: "one-job"}, copied}, "service": {nil, selector},
		}
		expectLabels(w, "one", after)

		before = len(w.Writes())
		w.Patch(fixture.NewWidget("one"), `{"spec":{"size":2}}`)
		w.Advance(time.Minute)
		if writes := w.Writes()[before:]; len(writes) > 0 {
			w.Errorf("the next call writes %v", writes)
		}
		w.Patch(fixture.NewWidget("one"), `{"metadata":{"labels":{"team":"b","`+instanceLabel+`":null}}}`)
		w.Advance(time.Minute)
		after["web"][1]["team"] = "b"
		after["selecting"][1]["team"] = "b"
		expectLabels(w, "one", after)
	})
}

// A new child gets a tracking label only where its selector names it: the API server would refuse it without.
func TestANewChildGetsTheTrackingLabelThatItsSelectorNames(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		nested, plain := []einmal.ApplyOption{einmal.NestedLabels("spec.template")}, []einmal.ApplyOption(nil)
		startShops(w, &nested, &plain)
		w.Create(trackedWidget("two"))
		w.Advance(time.Minute)
		expectLabels(w, "two", map[string][2]map[string]string{
			"web":       {nil, {"team": "a", "example.com/tier": "gold", "app": "two-web"}},
			"selecting": {nil, {"team": "a", "example.com/tier": "gold", "app": "two-selecting", instanceLabel: "shop"}},
			// The API server gives a Job without labels those of its template.
			"job":     {{"team": "a", "example.com/tier": "gold"}, {"team": "a", "example.com/tier": "gold"}},
			"service": {nil, {"team": "a", instanceLabel: "shop"}},
		})
	})
}
