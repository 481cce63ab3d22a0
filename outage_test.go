package einmal_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/internal/testkit/cluster"
	"github.com/einmal-operators/einmal/internal/testkit/simulation"
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
	j, use := &journal{}, typedCarrier()
	op := einmal.New(testIdentity, einmal.Scheme(addTestKinds))
	use.declare(op, plan{journal: j})
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
	j, use, log := &journal{}, typedCarrier(), testLog(t)
	op := einmal.New(testIdentity, einmal.Scheme(addTestKinds), einmal.Logger(slog.New(slog.NewTextHandler(log, nil))))
	use.declare(op, plan{journal: j})
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
	for i := 0; log.lines("error~Unauthorized") == 0; i++ {
		name := fmt.Sprintf("refused-%d", i)
		w.create(t, use, name)
		cluster.Until(t, "the operator handles "+name, func() bool { return len(j.of(name)) > 0 })
	}
	issue()
	for i := range 100 {
		name := fmt.Sprintf("refused-%d", i)
		if len(j.of(name)) == 0 {
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

// An API server that refuses to list for a while causes only a delay: the operator reports that it is not ready, and serves when it can
// (scenario 89).
func TestRefusedListsAreTriedUntilTheyAreAnswered(t *testing.T) {
	for code, reason := range map[int]string{
		http.StatusInternalServerError: "InternalError", http.StatusForbidden: "Forbidden", http.StatusNotFound: "NotFound",
	} {
		t.Run(reason, func(t *testing.T) { listsAreRefused(t, code, reason) })
	}
}

func listsAreRefused(t *testing.T, code int, reason string) {
	t.Helper()
	j := &journal{}
	virtually(t, testLog(t), func(op *einmal.Operator) { typedCarrier().declare(op, plan{journal: j}) }, func(t *testing.T, w *virtualWorld) {
		w.Pass(time.Minute)
		w.Stop()
		if err := w.User.Create(t.Context(), widgetNamed("early")); err != nil {
			t.Fatal(err)
		}
		refused := 0
		remove := w.Server.Intercept(func(answer http.ResponseWriter, r *http.Request, next http.Handler) {
			if strings.HasSuffix(r.URL.Path, "/widgets") && r.Method == http.MethodGet {
				refused++
				refuse(answer, code, reason)
				return
			}
			next.ServeHTTP(answer, r)
		})
		w.start()
		w.Pass(5 * time.Minute)
		if len(j.of("early")) != 0 || refused == 0 || refused > 5*60 {
			t.Errorf("after %d refusals in five minutes it was called %q", refused, j.of("early"))
		}
		remove()
		w.Pass(2 * time.Minute)
		if got := j.of("early"); !slices.Equal(got, []string{"make (create, attempt 1)"}) {
			t.Errorf("when lists are answered again it is called %q", got)
		}
	})
}

// refuse answers as an API server does that will not.
func refuse(answer http.ResponseWriter, code int, reason string) {
	answer.Header().Set("Content-Type", "application/json")
	answer.WriteHeader(code)
	_, _ = fmt.Fprintf(answer, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"code":%d}`, reason, code)
}

func widgetNamed(name string) *Widget {
	return &Widget{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}}
}

// Einmal waits as long as an API server asks for (Retry-After), and the handler is not called again because of that (scenario 90).
func TestTheWaitThatAnAPIServerAsksForIsKept(t *testing.T) {
	const wait = 7 * time.Second
	j := &journal{}
	virtually(t, testLog(t), func(op *einmal.Operator) { typedCarrier().declare(op, plan{journal: j}) }, func(t *testing.T, w *virtualWorld) {
		w.Pass(time.Minute)
		var asked []time.Time
		w.Server.Intercept(func(answer http.ResponseWriter, r *http.Request, next http.Handler) {
			if r.Method == http.MethodPatch && strings.Contains(r.URL.Path, "/widgets/") {
				asked = append(asked, time.Now())
				if len(asked) == 1 {
					answer.Header().Set("Retry-After", fmt.Sprint(wait.Seconds()))
					refuse(answer, http.StatusTooManyRequests, "TooManyRequests")
					return
				}
			}
			next.ServeHTTP(answer, r)
		})
		if err := w.User.Create(t.Context(), widgetNamed("one")); err != nil {
			t.Fatal(err)
		}
		w.Pass(time.Minute)
		if len(asked) != 2 || asked[1].Sub(asked[0]) < wait {
			t.Errorf("it was asked at %v, want twice, %s apart", asked, wait)
		}
		if got := j.of("one"); !slices.Equal(got, []string{"make (create, attempt 1)"}) {
			t.Errorf("calls: %q", got)
		}
	})
}

// Ten thousand objects at the start are listed once and handled by no more workers than configured. A start with nothing to do writes nothing
// and sends no other requests (scenario 94).
func TestTenThousandObjectsAtTheStart(t *testing.T) {
	const workers = 16
	var mu sync.Mutex
	running, most, called := 0, 0, 0
	declare := func(op *einmal.Operator) {
		einmal.For[Widget](op).OnCreate("make", func(context.Context, *einmal.Change[Widget]) error {
			mu.Lock()
			called++
			running++
			most = max(most, running)
			mu.Unlock()
			<-time.After(100 * time.Millisecond)
			mu.Lock()
			running--
			mu.Unlock()
			return nil
		})
	}
	virtually(t, testLog(t), declare, func(t *testing.T, w *virtualWorld) {
		w.Stop()
		for i := range objects {
			if err := w.User.Create(t.Context(), widgetNamed(fmt.Sprintf("w-%d", i))); err != nil {
				t.Fatal(err)
			}
		}
		w.start()
		w.Pass(10 * time.Minute)
		writes := slices.DeleteFunc(w.Writes(), func(made simulation.Request) bool { return made.Resource == "configmaps" }) // the watermark
		if called != objects || most > workers || len(writes) != objects {
			t.Errorf("%d calls, at most %d at once, %d writes; want %d, at most %d, %d", called, most, len(writes), objects, workers, objects)
		}
		w.Stop()
		asked := map[string]int{}
		w.Server.Intercept(func(answer http.ResponseWriter, r *http.Request, next http.Handler) {
			mu.Lock()
			if strings.Contains(r.URL.Path, "/widgets") {
				asked[r.Method]++
			}
			mu.Unlock()
			next.ServeHTTP(answer, r)
		})
		w.start()
		w.Pass(time.Minute)
		if called != objects || asked[http.MethodGet] != 1 || len(asked) != 1 {
			t.Errorf("a start with nothing to do called %d handlers and asked %v, want one list that is watched", called-objects, asked)
		}
	})
}
