package node

import (
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal-operators/einmal/internal/testkit/realnode"
)

// operation is something that happens to the servers of an app.
type operation struct {
	name string
	do   func(t *testing.T)
	// primary is the server that accepts writes afterwards.
	primary int
}

// An app writes while all that may happen to its database happens, on an idle machine and on one that is busy. Nothing that was committed is lost, and never
// do two servers accept writes. The log says how long the app could not write, and what the status said meanwhile.
func TestNodeKeepsWhatIsCommittedWhateverHappens(t *testing.T) {
	for _, busy := range []int{0, 4} {
		t.Run(fmt.Sprintf("beside %d busy processes", busy), func(t *testing.T) {
			t.Setenv("EINMAL_POSTGRES_VERSIONS", "16.13 16")
			s := &started{realnode.Start(t, script, ready)}
			s.connect(t, "16")
			s.awaitServers(t, "Ready Streaming")
			keepBusy(t, busy)
			app, end := s.writes(t)
			said := s.listen(t)
			for _, one := range s.operations() {
				app.pause()
				said.take()
				begun := time.Now()
				one.do(t)
				s.awaitPrimary(t, one.primary)
				app.awaitWrite(t)
				t.Logf("%s: the app could not write for %s; all was well again after %s", one.name, app.pause(), time.Since(begun).Round(time.Second))
				t.Logf("  the status said: %s", strings.Join(said.take(), ", "))
			}
			t.Logf("%d servers have accepted writes, one after the other", end())
			s.wereNotKilled(t)
		})
	}
}

// operations end with a failover: the data of the primary are lost, and a person says that the standby has all.
func (s *started) operations() []operation {
	set := func(spec string) func(*testing.T) {
		return func(t *testing.T) { t.Helper(); s.change(t, "orders-db", spec) }
	}
	return []operation{
		{"switchover", set(`{"primary":1}`), 1},
		{"switchover back", set(`{"primary":0}`), 0},
		{"the primary's Pod is deleted", func(t *testing.T) { s.remove(t, "pod", "orders-db-0") }, 0},
		{"the standby's Pod is deleted", func(t *testing.T) { s.remove(t, "pod", "orders-db-1") }, 0},
		{"the primary is killed", func(t *testing.T) { s.killServer(t, 0) }, 0},
		{"the standby is killed", func(t *testing.T) { s.killServer(t, 1) }, 0},
		{"the operator is killed", func(t *testing.T) { s.killOperator(t, time.Second) }, 0},
		{"a parameter that a server reads", func(t *testing.T) { s.sets(t, "work_mem", "8MB") }, 0},
		{"a parameter that needs a restart", func(t *testing.T) { s.sets(t, "max_connections", "50") }, 0},
		{"the volumes grow", func(t *testing.T) {
			s.change(t, "orders-db", `{"storage":"120Gi"}`)
			s.await(t, "database", "orders-db", ".status.storage.actual", "120Gi")
		}, 0},
		{"a minor version", func(t *testing.T) {
			s.change(t, "orders-db", `{"primary":null,"version":"16"}`)
			s.await(t, "database", "orders-db", ".status.version", "16")
		}, 1},
		{"failover after the primary's volume is lost", func(t *testing.T) {
			s.MustKubectl(t, "delete", "persistentvolumeclaim", "--namespace", "production", "data-orders-db-1", "--wait=false")
			s.remove(t, "pod", "orders-db-1")
			s.awaitReason(t, "orders-db", "DataMissing")
			s.obey(t, "annotate ")
		}, 0},
	}
}

// sets sets a parameter, and waits until the app has it.
func (s *started) sets(t *testing.T, name, value string) {
	t.Helper()
	s.change(t, "orders-db", fmt.Sprintf(`{"parameters":{%q:%q}}`, name, value))
	s.awaitSQL(t, "show "+name, value)
}

// killServer kills a server as the kernel does when memory is short, and waits until its container runs again.
func (s *started) killServer(t *testing.T, ordinal int) {
	t.Helper()
	pod := fmt.Sprintf("orders-db-%d", ordinal)
	pid, err := strconv.Atoi(process(t, "POD_NAME="+pod, "postgres", "-D"))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	s.await(t, "pod", pod, ".status.containerStatuses[0].restartCount", "1")
	s.await(t, "pod", pod, ".status.containerStatuses[0].ready", "true")
}

// keepBusy keeps the machine busy until the test ends.
func keepBusy(t *testing.T, processes int) {
	t.Helper()
	for range processes {
		cmd := exec.CommandContext(t.Context(), "sh", "-c", "while :; do :; done")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Wait() }) // The end of the context has killed it.
	}
}

// awaitWrite waits until the app has written once more.
func (w *writer) awaitWrite(t *testing.T) {
	t.Helper()
	count := func() int {
		w.mu.Lock()
		defer w.mu.Unlock()
		return len(w.written)
	}
	for before := count(); count() == before; {
		select {
		case <-time.After(10 * time.Millisecond):
		case <-t.Context().Done():
			t.Fatal("the app does not write")
		}
	}
}

// said is what the status of a Database has said.
type said struct {
	mu    sync.Mutex
	words []string
}

// listen listens to the reason of the condition Ready, until the test ends.
func (s *started) listen(t *testing.T) *said {
	t.Helper()
	to := &said{}
	s.EachLine(t, func(line string) {
		to.mu.Lock()
		defer to.mu.Unlock()
		to.words = append(to.words, line)
	}, "get", "database", "--namespace", "production", "orders-db", "--watch", "--output",
		`jsonpath={.status.conditions[?(@.type=="Ready")].reason}/{.status.conditions[?(@.type=="Progressing")].reason}{"\n"}`)
	return to
}

// take returns what was said since the last call, without repetitions.
func (s *said) take() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	words := slices.Compact(s.words)
	s.words = nil
	return words
}

// wereNotKilled expects that no probe has killed a container.
func (s *started) wereNotKilled(t *testing.T) {
	t.Helper()
	events := s.MustKubectl(t, "get", "events", "--all-namespaces", "--field-selector", "reason=Killing", "--output", "jsonpath={range .items[*]}{.message}{\"\\n\"}{end}")
	var killed []string
	for line := range strings.Lines(events) {
		if strings.Contains(line, "probe") {
			killed = append(killed, line)
		}
	}
	if diff := cmp.Diff([]string(nil), killed); diff != "" {
		t.Errorf("containers were killed (-want +got):\n%s", diff)
	}
	t.Logf("probes that failed:\n%s", s.MustKubectl(t, "get", "events", "--all-namespaces", "--field-selector", "reason=Unhealthy",
		"--output", "jsonpath={range .items[*]}{.count} {.involvedObject.name}: {.message}{\"\\n\"}{end}"))
}
