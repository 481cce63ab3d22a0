package virtual_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/einmaltest"
	"github.com/einmal-operators/einmal/internal/testkit/simulation"
	"github.com/einmal-operators/einmal/test/fixture"
)

// oneWorker makes an operator that handles one object at a time.
func oneWorker(t *testing.T, options ...einmal.OperatorOption) *einmal.Operator {
	t.Helper()
	return einmal.New(fixture.Identity, append(options, einmal.Scheme(fixture.AddKinds), einmal.CRDs(fixture.CRDs()),
		einmal.StateNamespace("default"), einmal.Workers(1), einmal.HandlerDefaults(einmal.AttemptTimeout(time.Hour)))...)
}

// noted is a handler that adds each of its runs to a journal, and takes some time.
func noted(j *fixture.Journal, id string, takes func(*fixture.Widget) time.Duration) einmal.HandlerFunc[fixture.Widget] {
	return func(_ context.Context, c *einmal.Change[fixture.Widget]) error {
		text := fmt.Sprintf("%s (%s, attempt %d)", id, c.Reason, c.Attempt)
		if c.MaybeRepeated {
			text += " maybe repeated"
		}
		j.Add(c.Object.Name, text)
		if takes != nil {
			<-time.After(takes(c.Object))
		}
		return nil
	}
}

// wipeRecord removes the record of a widget.
func wipeRecord(t *testing.T, of client.Client, name string) {
	t.Helper()
	patchStatus(t, of, name, `{"status":{"records":null}}`)
}

func patchStatus(t *testing.T, of client.Client, name, merge string) {
	t.Helper()
	if err := of.Status().Patch(t.Context(), fixture.NewWidget(name), client.RawPatch(types.MergePatchType, []byte(merge))); err != nil {
		t.Fatal(err)
	}
}

// The record of one object is written while its handler runs. The other object was created in the same second and waits for the
// worker: the watermark must not pass it, not for the next process either.
func TestAnObjectThatWaitsInTheQueueIsNotLost(t *testing.T) {
	for name, test := range map[string]struct {
		options []einmal.OperatorOption
		takes   time.Duration
		// killAt is when the process is killed; 0 for never.
		killAt time.Duration
	}{
		"the default margin":               {takes: 15 * time.Minute},
		"a margin of seconds":              {[]einmal.OperatorOption{einmal.ClockMargin(10 * time.Second)}, 3 * time.Minute, 0},
		"the process is killed meanwhile":  {takes: 15 * time.Minute, killAt: 13 * time.Minute},
		"killed, with a margin of seconds": {[]einmal.OperatorOption{einmal.ClockMargin(10 * time.Second)}, 3 * time.Minute, 150 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			j := &fixture.Journal{}
			einmaltest.Run(t, func(w *einmaltest.World) {
				operator := func(*einmaltest.Process) *einmal.Operator {
					op := oneWorker(t, test.options...)
					widgets := einmal.For[fixture.Widget](op)
					widgets.OnCreate("quick", noted(j, "quick", nil))
					widgets.OnCreate("slow", noted(j, "slow", func(*fixture.Widget) time.Duration { return test.takes }))
					return op
				}
				w.Start(operator)
				w.Advance(time.Minute)
				w.Create(fixture.NewWidget("busy"), fixture.NewWidget("waits"))
				if test.killAt > 0 {
					w.Advance(test.killAt)
					w.Kill()
					w.Start(operator)
				}
				w.Advance(3 * test.takes)
			})
			if got := strings.Join(j.Of("waits"), ", "); !strings.Contains(got, "quick (create") || !strings.Contains(got, "slow (create") {
				t.Errorf("the object that waited: handlers ran %q, want quick and slow for its creation", got)
			}
		})
	}
}

// The clock of the API server is put back, so that an object arrives that is older than the watermark. Its creation is handled, also by
// the process after one that is killed at once.
func TestAnObjectThatArrivesLateIsNotLost(t *testing.T) {
	var faults []simulation.Fault
	for range 3 {
		faults = append(faults, simulation.Fault{
			Kind: simulation.ClockBack, At: simulation.Point{What: "patch widgets.test.einmal.dev default/first status", N: 1},
		})
	}
	j := &fixture.Journal{}
	virtually(t, fixture.NewLog(t), func(op *einmal.Operator) {
		einmal.For[fixture.Widget](op).OnCreate("make", noted(j, "make", func(of *fixture.Widget) time.Duration {
			return map[string]time.Duration{"late": 5 * time.Minute}[of.Name]
		}))
	}, func(t *testing.T, w *virtualWorld) {
		create := func(name string) {
			if err := w.User.Create(t.Context(), fixture.NewWidget(name)); err != nil {
				t.Fatal(err)
			}
		}
		w.Pass(time.Minute)
		create("first")
		w.Pass(12 * time.Minute)
		create("late")
		w.Pass(5 * time.Second)
		w.Kill()
		w.start()
		w.Pass(20 * time.Minute)
		j.Called(t, "late", "make (create, attempt 1)", "make (create, attempt 1) maybe repeated")
		w.restart(func() { wipeRecord(t, w.User, "first") })
		w.Pass(time.Minute)
		j.Called(t, "first", "make (create, attempt 1)") // The watermark is back where it was.
	}, faults...)
}

// Objects that never get a record do not keep the watermark from protecting the others.
func TestOneObjectDoesNotKeepTheWatermarkFromOthers(t *testing.T) {
	for name, stuck := range map[string]func(*testing.T, client.Client){
		"one that hangs in its deletion": func(t *testing.T, api client.Client) {
			hangs := fixture.NewWidget("stuck")
			hangs.Finalizers = []string{"other.example.com/finalizer"}
			if err := errors.Join(api.Create(t.Context(), hangs), api.Delete(t.Context(), hangs)); err != nil {
				t.Fatal(err)
			}
		},
		"one with a record of a newer release": func(t *testing.T, api client.Client) {
			newer := fixture.NewWidget("stuck")
			if err := api.Create(t.Context(), newer); err != nil {
				t.Fatal(err)
			}
			patchStatus(t, api, "stuck", fmt.Sprintf(`{"status":{"records":{%q:%q}}}`, fixture.Identity, `{"v":99,"uid":"`+newer.UID+`"}`))
		},
	} {
		t.Run(name, func(t *testing.T) {
			j := &fixture.Journal{}
			virtually(t, fixture.NewLog(t), func(op *einmal.Operator) {
				einmal.For[fixture.Widget](op).OnCreate("make", noted(j, "make", nil))
			}, func(t *testing.T, w *virtualWorld) {
				w.restart(func() { stuck(t, w.User) })
				w.Pass(time.Minute)
				if err := w.User.Create(t.Context(), fixture.NewWidget("ours")); err != nil {
					t.Fatal(err)
				}
				w.Pass(30 * time.Minute)
				w.restart(func() { wipeRecord(t, w.User, "ours") })
				w.Pass(time.Minute)
				j.Called(t, "ours", "make (create, attempt 1)")
			})
		})
	}
}

// An object of the first list that is never handled holds the watermark below itself, not below older objects, and the log says
// so once.
func TestAnObjectThatIsNeverHandledIsReported(t *testing.T) {
	j, log := &fixture.Journal{}, fixture.NewLog(t)
	virtually(t, log, func(op *einmal.Operator) {
		widgets := einmal.For[fixture.Widget](op)
		widgets.OnCreate("make", noted(j, "make", nil))
		widgets.OnUpdate("follow", func(context.Context, *einmal.Change[fixture.Widget]) error { return nil },
			einmal.When(func(widget *fixture.Widget) bool {
				if widget.Name == "stuck" {
					panic("the filter has a bug")
				}
				return true
			}))
	}, func(t *testing.T, w *virtualWorld) {
		w.restart(func() {
			for _, name := range []string{"ours", "stuck", "newer"} {
				if err := w.User.Create(t.Context(), fixture.NewWidget(name)); err != nil {
					t.Fatal(err)
				}
				w.Pass(time.Minute)
			}
		})
		w.Pass(40 * time.Minute)
		w.restart(func() { wipeRecord(t, w.User, "ours") })
		w.Pass(time.Minute)
		j.Called(t, "ours", "make (create, attempt 1) maybe repeated")
	})
	const said = "msg~object without a record holds the watermark back"
	fixture.ExpectLine(t, log, said)
	fixture.ExpectLine(t, log, said, "object=default/stuck")
}

// An index function that takes long delays the first pass of an object. The object was there before this process all the same.
func TestAnObjectThatWaitsForAnIndexWasThereBefore(t *testing.T) {
	j := &fixture.Journal{}
	einmaltest.Run(t, func(w *einmaltest.World) {
		operator := func(*einmaltest.Process) *einmal.Operator {
			op := oneWorker(t)
			einmal.Index(op, "sizes", func(widget *fixture.Widget) (map[string]int, error) {
				if widget.Spec.Size == 2 {
					<-time.After(20 * time.Second)
				}
				return map[string]int{"all": widget.Spec.Size}, nil
			})
			einmal.For[fixture.Widget](op).OnCreate("make", noted(j, "make", func(*fixture.Widget) time.Duration { return 10 * time.Second }))
			return op
		}
		w.Install(operator)
		w.Create(fixture.NewWidget("one"), fixture.NewWidget("other"))
		w.Start(operator)
		w.Advance(2 * time.Second)
		waits := "one"
		if len(j.Of("one")) > 0 {
			waits = "other"
		}
		w.Patch(fixture.NewWidget(waits), `{"spec":{"size":2}}`)
		w.Advance(time.Minute)
		j.Called(w, waits, "make (create, attempt 1) maybe repeated")
	})
}

// Live changes keep the only worker busy. Objects of the first list are handled all the same, and so are their retries.
func TestTheFirstListIsHandledBesideLiveChanges(t *testing.T) { //nolint:gocognit // One story, told row by row.
	for name, test := range map[string]struct {
		// quiet is the time before the live changes begin.
		quiet time.Duration
		want  []string
	}{
		"the first pass":                   {0, []string{"make (create, attempt 1) maybe repeated"}},
		"a retry of an object passed once": {8 * time.Second, []string{"make (create, attempt 1) maybe repeated", "make (create, attempt 2) maybe repeated"}},
	} {
		t.Run(name, func(t *testing.T) {
			j := &fixture.Journal{}
			einmaltest.Run(t, func(w *einmaltest.World) {
				takes := func(of *fixture.Widget) time.Duration {
					if of.Name == "waits" {
						return 0
					}
					return time.Second
				}
				operator := func(*einmaltest.Process) *einmal.Operator {
					op := oneWorker(t)
					widgets := einmal.For[fixture.Widget](op)
					widgets.OnCreate("make", func(ctx context.Context, c *einmal.Change[fixture.Widget]) error {
						err := noted(j, "make", takes)(ctx, c)
						if c.Object.Name == "waits" && c.Attempt < len(test.want) {
							return einmal.RetryAfter(10*time.Second, errors.New("not yet"))
						}
						return err
					})
					widgets.OnUpdate("follow", noted(j, "follow", takes))
					return op
				}
				w.Install(operator)
				busy := []client.Object{fixture.NewWidget("busy-1"), fixture.NewWidget("busy-2"), fixture.NewWidget("busy-3")}
				w.Create(append(busy, fixture.NewWidget("waits"))...)
				w.Start(operator)
				w.Advance(test.quiet)
				for size := range 60 {
					for _, object := range busy {
						w.Patch(object, fmt.Sprintf(`{"spec":{"size":%d}}`, 10+size))
					}
					w.Advance(500 * time.Millisecond)
				}
				j.Called(w, "waits", test.want...)
			})
		})
	}
}

// A namespace in which the operator may not watch at first holds objects that an earlier process may have handled. A namespace
// that is created later does not.
func TestObjectsOfANamespaceThatIsGrantedLaterWereThereBefore(t *testing.T) {
	j := &fixture.Journal{}
	operator := func() simulation.Operator {
		op := oneWorker(t, einmal.Namespaces("app-*"))
		einmal.For[fixture.Widget](op).OnCreate("make", noted(j, "make", nil))
		return op
	}
	virtuallyMade(t, fixture.NewLog(t), operator, func(t *testing.T, w *virtualWorld) {
		create := func(namespace string, names ...string) {
			err := w.User.Create(t.Context(), fixture.NewNamespace(namespace))
			for _, name := range names {
				widget := fixture.NewWidget(name)
				widget.Namespace = namespace
				err = errors.Join(err, w.User.Create(t.Context(), widget))
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		var closed []string
		for i := range 100 {
			closed = append(closed, fmt.Sprint("closed-", i))
		}
		var grant func()
		w.restart(func() {
			create("app-free", "free")
			create("app-closed", closed...)
			grant = w.Server.Intercept(func(answer http.ResponseWriter, r *http.Request, next http.Handler) {
				if strings.HasSuffix(r.URL.Path, "/namespaces/app-closed/widgets") {
					forbid(t, answer, schema.GroupResource{Group: fixture.Group, Resource: "widgets"}, "")
					return
				}
				next.ServeHTTP(answer, r)
			})
		})
		w.Pass(5 * time.Minute)
		grant()
		w.Pass(5 * time.Minute)
		create("app-new", "new")
		w.Pass(time.Minute)
		j.Called(t, "free", "make (create, attempt 1) maybe repeated")
		for _, name := range closed { // Their first passes run while the list is still being delivered.
			j.Called(t, name, "make (create, attempt 1) maybe repeated")
		}
		j.Called(t, "new", "make (create, attempt 1)")
	})
}

// forbid answers as an API server does when a right is missing.
func forbid(t *testing.T, answer http.ResponseWriter, resource schema.GroupResource, name string) {
	t.Helper()
	status := apierrors.NewForbidden(resource, name, errors.New(`User "operator" cannot get resource: no role grants it`)).Status()
	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	text, err := json.Marshal(status)
	if err != nil {
		t.Error(err)
	}
	answer.Header().Set("Content-Type", "application/json")
	answer.WriteHeader(http.StatusForbidden)
	_, _ = answer.Write(text)
}

// narrowOperator runs in a manager whose cache holds one namespace only, although the operator serves all.
type narrowOperator struct{ *einmal.Operator }

// NewManager limits the cache.
func (n narrowOperator) NewManager(config *rest.Config, options manager.Options) (manager.Manager, error) {
	options.Cache.DefaultNamespaces = map[string]cache.Config{"default": {}}
	return n.Operator.NewManager(config, options)
}

// The watermark says nothing about namespaces that the cache did not hold.
func TestAWiderCacheShowsNewObjects(t *testing.T) {
	j, narrow := &fixture.Journal{}, true
	operator := func() simulation.Operator {
		op := oneWorker(t)
		einmal.For[fixture.Widget](op).OnCreate("make", noted(j, "make", nil))
		if narrow {
			return narrowOperator{op}
		}
		return op
	}
	virtuallyMade(t, fixture.NewLog(t), operator, func(t *testing.T, w *virtualWorld) {
		elsewhere := fixture.NewWidget("elsewhere")
		elsewhere.Namespace = "other"
		for _, made := range []client.Object{fixture.NewNamespace("other"), elsewhere, fixture.NewWidget("ours")} {
			if err := w.User.Create(t.Context(), made); err != nil {
				t.Fatal(err)
			}
			w.Pass(time.Minute)
		}
		w.Pass(20 * time.Minute)
		w.restart(func() {
			narrow = false
			wipeRecord(t, w.User, "ours")
		})
		w.Pass(time.Minute)
		j.Called(t, "ours", "make (create, attempt 1)")
		j.Called(t, "elsewhere", "make (create, attempt 1) maybe repeated")
	})
}
