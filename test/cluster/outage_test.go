package cluster_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/internal/testkit/cluster"
	"github.com/einmal-operators/einmal/test/fixture"
)

// TestConnectionFailuresOnARealControlPlane shows that an operator outlives its connections and its token.
func TestConnectionFailuresOnARealControlPlane(t *testing.T) {
	t.Setenv("HTTP2_READ_IDLE_TIMEOUT_SECONDS", "3") // How soon client-go asks a silent connection, so that the test is short.
	t.Setenv("HTTP2_PING_TIMEOUT_SECONDS", "2")
	w := newWorld(t)
	t.Run("a connection falls silent (scenario 88)", w.silentConnection)
	t.Run("nothing gets through for a while (scenarios 88 and 89)", w.cutOff)
	t.Run("the token is not valid any more (scenario 91)", w.tokenReplaced)
}

// valve stands between an operator and the API server. Closed, it lets nothing through on the connections that there are, and
// does not break them either; new ones are open.
type valve struct {
	listener net.Listener
	mu       sync.Mutex
	closed   chan struct{}
	accepted int
}

func newValve(t *testing.T, target string) *valve {
	t.Helper()
	var config net.ListenConfig
	listener, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	v := &valve{listener: listener, closed: make(chan struct{})}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			from, err := listener.Accept()
			if err != nil {
				return
			}
			var dialer net.Dialer
			to, err := dialer.DialContext(context.Background(), "tcp", target)
			if err != nil {
				_ = from.Close()
				continue
			}
			closed := v.accept()
			go v.pass(from, to, closed)
			go v.pass(to, from, closed)
		}
	}()
	return v
}

// accept counts a new connection, and returns what closes it.
func (v *valve) accept() <-chan struct{} {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.accepted++
	return v.closed
}

// connections is how many have been accepted.
func (v *valve) connections() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.accepted
}

// close closes the connections that there are.
func (v *valve) close() {
	v.mu.Lock()
	defer v.mu.Unlock()
	close(v.closed)
	v.closed = make(chan struct{})
}

// shut closes all connections, also those that are made before open is called.
func (v *valve) shut() {
	v.mu.Lock()
	defer v.mu.Unlock()
	close(v.closed)
}

// open lets new connections through again after shut.
func (v *valve) open() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.closed = make(chan struct{})
}

// pass hands on what arrives, until the valve is closed; then it keeps it.
func (v *valve) pass(from, to net.Conn, closed <-chan struct{}) {
	part := make([]byte, 32<<10)
	for {
		n, err := from.Read(part)
		if err != nil {
			_ = to.Close()
			return
		}
		select {
		case <-closed:
			continue
		default:
		}
		if _, err := to.Write(part[:n]); err != nil {
			_ = from.Close()
			return
		}
	}
}

func (w *world) silentConnection(t *testing.T) {
	between := newValve(t, strings.TrimPrefix(w.account.Host, "https://"))
	account := rest.CopyConfig(w.account)
	account.Host = "https://" + between.listener.Addr().String()
	j, use := &fixture.Journal{}, fixture.StatusCarrier()
	op := einmal.New(fixture.Identity, einmal.Scheme(fixture.AddKinds))
	use.Declare(op, fixture.Plan{Journal: j})
	stop := w.run(t, op, account)
	w.create(t, use, "before")
	w.called(t, use, j, "before", "make (create, attempt 1)")
	between.close()
	w.create(t, use, "silent")
	w.edit(t, use, "before", "size", int64(2))
	w.called(t, use, j, "silent", "make (create, attempt 1)")
	w.called(t, use, j, "before", "make (create, attempt 1)", "resize (update, attempt 1)")
	stop()
	w.delete(t, use, "before")
	w.delete(t, use, "silent")
}

// tokenReplaced deletes and re-creates the account, so that the operator's token is rejected, and gives the operator the new token later.
func (w *world) tokenReplaced(t *testing.T) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "operator"}}
	token := filepath.Join(t.TempDir(), "token")
	issue := func() {
		issued := &authenticationv1.TokenRequest{}
		if err := w.SubResource("token").Create(t.Context(), account, issued); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(token, []byte(issued.Status.Token), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	issue()
	config := rest.AnonymousClientConfig(w.account)
	config.BearerTokenFile = token
	j, use, log := &fixture.Journal{}, fixture.StatusCarrier(), fixture.NewLog(t)
	op := einmal.New(fixture.Identity, einmal.Scheme(fixture.AddKinds), einmal.Logger(slog.New(slog.NewTextHandler(log, nil))))
	use.Declare(op, fixture.Plan{Journal: j})
	stop := w.run(t, op, config)
	w.create(t, use, "early")
	w.called(t, use, j, "early", "make (create, attempt 1)")
	if err := w.Delete(t.Context(), account); err != nil {
		t.Fatal(err)
	}
	account = &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "operator"}}
	if err := w.Create(t.Context(), account); err != nil {
		t.Fatal(err)
	}
	// The API server remembers for a while that the old token was good.
	for i := 0; log.Count("error~Unauthorized") == 0; i++ {
		name := fmt.Sprintf("refused-%d", i)
		w.create(t, use, name)
		cluster.Until(t, "the operator handles "+name, func() bool { return len(j.Of(name)) > 0 })
	}
	issue()
	for i := range 100 {
		name := fmt.Sprintf("refused-%d", i)
		if len(j.Of(name)) == 0 {
			break
		}
		w.called(t, use, j, name, "make (create, attempt 1)")
		w.delete(t, use, name)
	}
	stop()
	w.delete(t, use, "early")
	w.account.BearerToken = readToken(t, token)
}

func readToken(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
