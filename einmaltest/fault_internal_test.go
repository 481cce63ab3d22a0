package einmaltest

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/internal/testkit/simulation"
)

// trace is what an operator has noticed in one run, each line with the time since the beginning.
type trace struct {
	mu    sync.Mutex
	begun time.Time
	lines []string
	// version is the highest resource version of the object that was seen.
	version int
}

func (tr *trace) note(format string, values ...any) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	after := time.Since(tr.begun).Truncate(time.Second)
	tr.lines = append(tr.lines, after.String()+" "+fmt.Sprintf(format, values...))
}

// noticing is a scenario whose operator notes what it asks for and what it gets.
func noticing(noted *trace) Scenario {
	return func(w *World) {
		noted.begun = time.Now()
		processes := 0
		w.Start(func(p *Process) *einmal.Operator {
			noted.mu.Lock()
			processes++
			of := probe{trace: noted, process: p, number: processes}
			noted.mu.Unlock()
			of.note("process %d begins", of.number)
			op := einmal.New("probe.example.com", einmal.Permissions(&corev1.Service{}, "create", "get", "update"), einmal.Permissions(&corev1.ConfigMap{}, "get"))
			configs := einmal.For[corev1.ConfigMap](op)
			configs.OnCreate("make", of.make)
			configs.OnUpdate("check", of.check)
			return op
		})
		one := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "one"}, Data: map[string]string{"size": "1"}}
		w.Create(one)
		w.Advance(10 * time.Minute)
		w.Patch(one, `{"data":{"size":"2"}}`)
		w.Advance(20 * time.Minute)
		w.Patch(one, `{"data":{"size":"3"}}`)
		w.Advance(10 * time.Minute)
	}
}

// probe is what one process notices.
type probe struct {
	*trace
	process *Process
	number  int
}

func (of probe) service() *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "child"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
	}
}

// tried notes how something ended.
func (of probe) tried(what string, err error) error {
	if err == nil {
		of.note("%d: %s", of.number, what)
	} else {
		of.note("%d: %s: %v", of.number, what, err)
	}
	return err
}

func (of probe) make(ctx context.Context, c *einmal.Change[corev1.ConfigMap]) error {
	of.note("%d: make, attempt %d", of.number, c.Attempt)
	charge := func() (any, error) {
		of.note("%d: charged", of.number)
		return nil, nil
	}
	if err := of.tried("charge", of.process.Effect("charge", charge)); err != nil {
		return err
	}
	of.look(ctx, c)
	child := of.service()
	err := of.tried("create", c.Client.Create(ctx, child))
	if err == nil {
		of.note("%d: the child was created %s ago", of.number, time.Since(child.CreationTimestamp.Time).Round(time.Minute))
	}
	return client.IgnoreAlreadyExists(err)
}

func (of probe) check(ctx context.Context, c *einmal.Change[corev1.ConfigMap]) error {
	of.note("%d: check, attempt %d, size %s", of.number, c.Attempt, c.Object.Data["size"])
	if old, known := c.Old(); known {
		of.note("%d: the size was %s", of.number, old.Data["size"])
	}
	if err := of.tried("measure", of.process.IdempotentEffect("measure", func() (any, error) { return nil, nil })); err != nil {
		return err
	}
	of.look(ctx, c)
	child := of.service()
	if err := of.tried("get child", c.Client.Get(ctx, client.ObjectKeyFromObject(child), child)); err != nil {
		return client.IgnoreNotFound(err)
	}
	of.note("%d: the child was created %s ago, with labels %v", of.number, time.Since(child.CreationTimestamp.Time).Round(time.Minute), child.Labels)
	child.Spec.Ports[0].Port = 81
	if err := of.tried("update child", c.Client.Update(ctx, child)); err != nil {
		return client.IgnoreNotFound(err)
	}
	of.note("%d: the child has labels %v", of.number, child.Labels)
	return nil
}

// look notes what the object is like on the API server.
func (of probe) look(ctx context.Context, c *einmal.Change[corev1.ConfigMap]) {
	live := &corev1.ConfigMap{}
	if err := of.tried("get", c.Client.Get(ctx, client.ObjectKeyFromObject(c.Object), live)); err != nil {
		return
	}
	of.note("%d: it has the annotations %v, size %s, deleted: %t", of.number, slices.Sorted(maps.Keys(live.Annotations)), live.Data["size"], live.DeletionTimestamp != nil)
	if version, err := strconv.Atoi(live.ResourceVersion); err == nil {
		of.mu.Lock()
		notHigher := version <= of.version
		of.version = max(of.version, version)
		of.mu.Unlock()
		if notHigher {
			of.note("%d: its version is no higher than before", of.number)
		}
	}
}

// faultRow is a schedule, and what the operator notices or asks for then that it does not without faults.
type faultRow struct {
	schedule string
	noticed  []string
}

// faultTable has a schedule for each kind of fault. Process 2 is the first one that runs: number 1 is only asked for its declaration.
func faultTable() []faultRow {
	return slices.Concat(faultsThatEndProcesses(), faultsThatAnswer(), faultsOfOthers(), faultsThatLast())
}

func faultsThatEndProcesses() []faultRow {
	const crashed = "0s 2: charge: charge: the process has crashed"
	return []faultRow{
		{"crash before: effect charge #1", []string{crashed, "0s process 3 begins", "0s 3: charged"}},
		{"crash after, its answer lost: effect charge #1", []string{crashed, "0s process 3 begins", "0s 3: charged"}},
		{"crash before, down 5m: effect charge #1", []string{crashed, "5m0s process 3 begins", "5m0s 3: charged"}},
		{"crash before, bookkeeping wiped while down: patch configmaps default/one #2", []string{"10m0s 3: it has the annotations [], size 2"}},
		{"crash before, resource versions reset while down: patch configmaps default/one #2", []string{"10m0s 3: its version is no higher than before"}},
		{"resource versions reset before: patch configmaps default/one #2", []string{"30m0s 2: its version is no higher than before"}},
		{"rolling update before: effect charge #1", []string{"0s process 3 begins", "10m0s 3: check, attempt 1, size 2"}},
		{"update before, rolled back 1m later: effect charge #1", []string{"0s process 3 begins", "5m0s process 4 begins", "10m0s 4: check, attempt 1, size 2"}},
	}
}

func faultsThatAnswer() []faultRow {
	const (
		create  = "create services default/child by make #1"
		update  = "update services default/child by check #1"
		refused = "0s 2: create: "
		again   = "2: make, attempt 2"
	)
	return []faultRow{
		{"answer lost: " + create, []string{refused + `Post`, `2: create: services "child" already exists`}},
		{"refused: " + create, []string{refused + "overloaded", "asked: create services default/child by make #2"}},
		{"refused 3 times in a row: " + create, []string{refused + "overloaded", "asked: create services default/child by make #4"}},
		{"forbidden: " + create, []string{refused + "services is forbidden"}},
		{"answered that the kind is not served: " + create, []string{refused + "the server could not find"}},
		{"throttled, retry after 2s: " + create, []string{"2s 2: create"}},
		{"API server overloaded for 20s from: " + create, []string{refused + "the server is currently unable", "asked: patch configmaps default/one #4"}},
		{"denied by a webhook: " + create, []string{refused + "admission webhook"}},
		{"over quota: " + create, []string{refused + `services "default/child" is forbidden: exceeded quota`}},
		{"conflict: " + update, []string{"10m0s 2: update child: Operation cannot be fulfilled"}},
		{"no answer, not carried out: " + create, []string{"1m10s 2: create: Post", "2: the child was created 0s ago"}},
		{"no answer, carried out: " + create, []string{"1m10s 2: create: Post", `2: create: services "child" already exists`}},
		{"API server unreachable for 2m before: " + create, []string{refused + "Post", "asked: patch configmaps default/one #8"}},
	}
}

func faultsOfOthers() []faultRow {
	const (
		update = "update services default/child by check #1"
		edited = "with labels map[example.com/edited:by-another-writer]"
	)
	return []faultRow{
		{"another writer before: patch configmaps default/one #1", []string{"2: it has the annotations [another-operator.example.com/record probe"}},
		{"bookkeeping wiped before: " + update, []string{"asked: get configmaps default/one #2", "asked: patch configmaps default/one #4"}},
		{"record replaced by other text before: patch configmaps default/one #2", []string{"asked: get configmaps default/one #2", "asked: patch configmaps default/one #4"}},
		{"older records put back before: patch configmaps default/one #3", []string{"asked: get configmaps default/one #2", "asked: patch configmaps default/one #4"}},
		{"crash before, older records put back while down: update services default/child by check #2", []string{"30m0s 3: the size was 1"}},
		{"child edited by another writer before: " + update, []string{"2: update child: Operation cannot be fulfilled", "2: the child was created 10m0s ago, " + edited}},
		{"child replaced by another writer before: " + update, []string{"2: update child: Operation cannot be fulfilled", "2: the child was created 0s ago, with labels map[]"}},
		{"child deleted by another writer before: get services default/child by check #1", []string{`2: get child: services "child" not found`}},
		{"user edits the object during: effect charge #1", []string{"1s 2: it has the annotations [example.com/edited], size 2"}},
		{"user deletes the object during: effect charge #1", []string{`1s 2: get: ConfigMap "one" not found`}},
		{"API server's clock 5m forward before: effect charge #1", []string{"10m0s 2: the child was created 5m0s ago"}},
		{"API server's clock 5m back before: effect charge #1", []string{"10m0s 2: the child was created 15m0s ago"}},
	}
}

func faultsThatLast() []faultRow {
	return []faultRow{
		{"cache stale by 1s", []string{"1s 2: make, attempt 1", "10m1s 2: check, attempt 1"}},
		{"cache stale by 30s", []string{"30s 2: make, attempt 1", "10m30s 2: check, attempt 1"}},
		{"requests and effects of handlers take 1s", []string{"1s 2: charged", "2s 2: the child was created"}},
		{"two replicas", []string{"0s process 3 begins", "0s 3: make, attempt 1", "0s 3: charged"}},
		{"a second replica stands by; crash after, its answer lost: effect charge #1", []string{"charge: the process has crashed", "0s process 3 begins", "10s process 4 begins"}},
		{"the clocks of replicas differ by 3m; two replicas", []string{"the child was created 13m0s ago"}},
		{"another operator handles the same objects", []string{"10m0s 2: it has the annotations [another-operator.example.com/record probe"}},
	}
}

// Each kind of fault does to an operator what its name says. TestWhatFaultsDoToEvents shows those of events, and
// TestAnOperatorThatDoesNotRepairItsChildrenIsFound those that happen while nothing else does. Forged records change nothing where records are in
// annotations: TestEachDimensionFindsItsBug shows them.
func TestEachKindOfFaultIsNoticed(t *testing.T) {
	shown := map[simulation.Kind]bool{
		simulation.EventDoubled: true, simulation.EventLost: true, simulation.EventsSwapped: true,
		simulation.IdleChildEdited: true, simulation.IdleChildDeleted: true, simulation.IdleChildReplaced: true,
		simulation.RecordForged: true, simulation.CrashThenForged: true,
	}
	clean, edits := noticedIn(t, simulation.Setup{})
	for _, row := range faultTable() {
		schedule, err := simulation.ParseSchedule(row.schedule)
		if err != nil {
			t.Fatal(err)
		}
		for _, fault := range schedule {
			shown[fault.Kind] = true
		}
		t.Run(row.schedule, func(t *testing.T) {
			noticed, _ := noticedIn(t, simulation.Setup{Schedule: schedule, Edits: edits})
			fresh := slices.DeleteFunc(slices.Clone(noticed), func(line string) bool { return slices.Contains(clean, line) })
			for _, want := range row.noticed {
				if !slices.ContainsFunc(fresh, func(line string) bool { return strings.Contains(line, want) }) {
					t.Errorf("%q is not noticed, only:\n%s", want, strings.Join(fresh, "\n"))
				}
			}
		})
	}
	for kind := range simulation.Kinds() {
		if !shown[kind] {
			t.Errorf("%s: no row shows what it does", kind)
		}
	}
}

// noticedIn plays a schedule. It returns what the operator noticed, and the edits of the scenario.
func noticedIn(t *testing.T, setup simulation.Setup) (lines []string, edits map[string][]string) {
	t.Helper()
	setup.Definitions, setup.Log = &simulation.Definitions{}, slog.New(slog.DiscardHandler)
	noted := &trace{}
	found := play(t, noticing(noted), setup)
	for _, point := range found.points {
		noted.lines = append(noted.lines, "asked: "+point.String())
	}
	for name := range found.objects {
		noted.lines = append(noted.lines, "left: "+name)
	}
	for _, failure := range found.failures {
		noted.lines = append(noted.lines, "failed: "+failure)
	}
	return noted.lines, found.userEdits
}
