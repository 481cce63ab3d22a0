package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/einmal-operators/einmal/einmaltest"
	v1 "github.com/einmal-operators/einmal/operators/tenant/api/v1"
)

// spent is what looks at tenants have cost so far.
type spent struct {
	looks int
	// connections and statements are those of the operator in PostgreSQL, secretReads the GET and LIST requests for Secrets at the API server.
	connections, statements, secretReads int
	// cpu is the CPU time of the operator, memory its resident memory in bytes.
	cpu    time.Duration
	memory float64
}

// since returns what was spent between an earlier count and this one.
func (s spent) since(earlier spent) spent {
	return spent{
		s.looks - earlier.looks, s.connections - earlier.connections, s.statements - earlier.statements, s.secretReads - earlier.secretReads,
		s.cpu - earlier.cpu, s.memory,
	}
}

// String is a row of figures, each for one look.
func (s spent) String() string {
	each := func(count int) float64 { return float64(count) / float64(s.looks) }
	return fmt.Sprintf("%d looks; for each: %.2f connections, %.2f statements, %.2f Secret reads; CPU for 1,000 looks: %s; memory: %.0f MiB",
		s.looks, each(s.connections), each(s.statements), each(s.secretReads), (s.cpu * 1000 / time.Duration(s.looks)).Round(time.Millisecond),
		s.memory/(1<<20))
}

// meter counts what an operator spends. It reads the logs of PostgreSQL and of the operator only once.
type meter struct {
	*stage

	running *einmaltest.Program
	api     *http.Client
	read    int64
	counted spent
}

// startMeter starts the operator, with connections logged by PostgreSQL.
func startMeter(t *testing.T) *meter {
	t.Helper()
	m := &meter{stage: startStage(t)}
	m.metrics = freeAddress(t)
	m.sql(t, "ALTER SYSTEM SET log_connections = on")
	m.sql(t, "SELECT pg_reload_conf()")
	m.program = quick(t)
	m.running = m.start(t)
	api, err := rest.HTTPClientFor(m.Config())
	if err != nil {
		t.Fatal(err)
	}
	m.api = api
	return m
}

// freeAddress is an address of this machine on which nothing listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}

// count counts what was spent until now.
func (m *meter) count(t *testing.T) spent {
	t.Helper()
	m.countStatements(t)
	m.counted.looks = m.looks()
	m.counted.secretReads = int(scrape(t, m.api, m.Config().Host+"/metrics", "apiserver_request_total{", `resource="secrets"`, `verb="GET"`)) +
		int(scrape(t, m.api, m.Config().Host+"/metrics", "apiserver_request_total{", `resource="secrets"`, `verb="LIST"`))
	m.counted.cpu = time.Duration(scrape(t, http.DefaultClient, "http://"+m.metrics+"/metrics", "process_cpu_seconds_total ") * float64(time.Second))
	m.counted.memory = scrape(t, http.DefaultClient, "http://"+m.metrics+"/metrics", "process_resident_memory_bytes ")
	return m.counted
}

// looks is how many looks at tenants have ended.
func (m *meter) looks() int { return strings.Count(m.running.Log(), `waits" kind=Tenant `) }

// countStatements reads on in the log of PostgreSQL.
func (m *meter) countStatements(t *testing.T) {
	t.Helper()
	file, err := os.Open(m.postgres.Dir + "/postgres.log")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	if _, err := file.Seek(m.read, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(file)
	for {
		line, err := lines.ReadString('\n')
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		m.read += int64(len(line))
		switch {
		case strings.Contains(line, "connection authorized:") && strings.Contains(line, "application_name=einmal-tenant"):
			m.counted.connections++
		case strings.Contains(line, " einmal-tenant: LOG:  statement: "), strings.Contains(line, " einmal-tenant: LOG:  execute "):
			m.counted.statements++
		}
	}
}

// scrape adds up the metrics whose lines begin with a name and have some labels.
func scrape(t *testing.T, with *http.Client, address, name string, labels ...string) float64 {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := with.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	sum := 0.0
	lines := bufio.NewScanner(answer.Body)
	lines.Buffer(nil, 1<<20)
next:
	for lines.Scan() {
		if !strings.HasPrefix(lines.Text(), name) {
			continue
		}
		for _, label := range labels {
			if !strings.Contains(lines.Text(), label) {
				continue next
			}
		}
		value, err := strconv.ParseFloat(lines.Text()[strings.LastIndex(lines.Text(), " ")+1:], 64)
		if err != nil {
			t.Fatalf("%s: %v", lines.Text(), err)
		}
		sum += value
	}
	if err := lines.Err(); err != nil {
		t.Fatalf("read %s: %v", address, err)
	}
	return sum
}

// waitLooks waits until so many more looks have ended.
func (m *meter) waitLooks(t *testing.T, more int) {
	t.Helper()
	until := m.looks() + more
	for m.looks() < until {
		letPass(t, 100*time.Millisecond)
	}
}

// letPass lets time go by, until the test has no more.
func letPass(t *testing.T, long time.Duration) {
	t.Helper()
	select {
	case <-t.Context().Done():
		t.Fatal("the test has no more time")
	case <-time.After(long):
	}
}

// manifestsOfTwo are so many tenants with two apps, of the names rest0, rest1 and so on.
func (m *meter) manifestsOfTwo(tenants int, interval string) []string {
	var all []string
	for i := range tenants {
		all = append(all, m.manifestOfTwo(fmt.Sprintf("rest%d", i), interval))
	}
	return all
}

// manifestOfTwo is a tenant with two apps that is looked at in some interval.
func (m *meter) manifestOfTwo(name, interval string) string {
	return strings.Replace(m.manifest(name, ", credentials: {probeInterval: "+interval+"}"), "{name: web}", "{name: web}, {name: api}", 1)
}

// tenantsVariable makes the test of the cost at rest measure so many tenants, each looked at every 60 seconds, instead of four.
const tenantsVariable = "EINMAL_TENANTS"

// TestALookWhereNothingHasChangedCostsLittle counts what the operator asks of PostgreSQL and of the API server while nothing changes. By hand:
//
//	EINMAL_TENANTS=1000 go test -vet=off -timeout 60m -run TestALookWhereNothingHasChangedCostsLittle -v .
func TestALookWhereNothingHasChangedCostsLittle(t *testing.T) {
	t.Parallel()
	m := startMeter(t)
	tenants, looks, interval := 4, 32, "10s"
	if given := os.Getenv(tenantsVariable); given != "" {
		number, err := strconv.Atoi(given)
		if err != nil || number < 1 {
			t.Fatalf("%s is %q: set it to a number of tenants", tenantsVariable, given)
		}
		tenants, looks, interval = number, 3000, "60s"
		m.sql(t, "ALTER ROLE admin SUPERUSER") // Without it PostgreSQL 15 takes long to make tenants: see docs/operators/tenant.md.
	}
	for all := range slices.Chunk(m.manifestsOfTwo(tenants, interval), 100) {
		m.Kubectl(t, strings.Join(all, "\n---\n"), "apply", "-f", "-")
	}
	for m.ready(t) < tenants {
		letPass(t, time.Second)
	}
	m.waitLooks(t, 2*tenants) // The first one after a change is a full look.
	before := m.count(t)
	m.waitLooks(t, looks)
	cost := m.count(t).since(before)
	t.Log(cost)
	// The pool connects again from time to time, and looks overlap the counting.
	if cost.connections > cost.looks+2 || cost.statements > 3*cost.looks+3 || cost.secretReads > cost.looks+2 {
		t.Errorf("a look costs too much, want at most 1 connection, 3 statements and 1 Secret read: %s", cost)
	}
}

// ready is how many tenants are ready.
func (m *meter) ready(t *testing.T) int {
	t.Helper()
	var all v1.TenantList
	if err := m.List(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	ready := 0
	for _, one := range all.Items {
		if one.Status.Phase == v1.Ready {
			ready++
		}
	}
	return ready
}
