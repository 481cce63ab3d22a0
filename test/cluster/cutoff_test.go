package cluster_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/internal/testkit/cluster"
	"github.com/einmal-operators/einmal/test/fixture"
)

// wire stands between an operator and the API server, and can be cut.
type wire struct {
	target, address string

	mu       sync.Mutex
	listener net.Listener
	ends     []net.Conn
}

// join lets connections through.
func (w *wire) join(t *testing.T) {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", w.address)
	if err != nil {
		t.Fatal(err)
	}
	w.mu.Lock()
	w.listener, w.address = listener, listener.Addr().String()
	w.mu.Unlock()
	go func() {
		for {
			from, err := listener.Accept()
			if err != nil {
				return
			}
			to, err := new(net.Dialer).DialContext(context.Background(), "tcp", w.target)
			if err != nil {
				_ = from.Close()
				continue
			}
			w.mu.Lock()
			w.ends = append(w.ends, from, to)
			w.mu.Unlock()
			go pump(from, to)
			go pump(to, from)
		}
	}()
}

func pump(from, to net.Conn) {
	_, _ = io.Copy(to, from)
	_, _ = from.Close(), to.Close()
}

// cut breaks all connections, and refuses new ones.
func (w *wire) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	_ = w.listener.Close()
	for _, end := range w.ends {
		_ = end.Close()
	}
	w.ends = nil
}

// cutOff shows that readiness reports a watch that cannot connect, and that the operator recovers afterwards.
func (w *world) cutOff(t *testing.T) {
	between := &wire{target: strings.TrimPrefix(w.account.Host, "https://"), address: "127.0.0.1:0"}
	between.join(t)
	t.Cleanup(between.cut)
	account := rest.CopyConfig(w.account)
	account.Host = "https://" + between.address
	j, use, health, shown := &fixture.Journal{}, fixture.StatusCarrier(), cluster.FreeAddress(t), cluster.FreeAddress(t)
	op := einmal.New(fixture.Identity, einmal.Scheme(fixture.AddKinds))
	use.Declare(op, fixture.Plan{Journal: j})
	stop := fixture.Run(t, op, account, einmal.RunOptions{SingleReplica: true, HealthAddress: health, MetricsAddress: shown})
	w.create(t, use, "before")
	w.called(t, use, j, "before", "make (create, attempt 1)")
	answers(t, "http://"+health+"/readyz?verbose", http.StatusOK, "ok")
	answers(t, "http://"+shown+"/metrics", http.StatusOK, watchMetric("", 1))
	between.cut()
	answers(t, "http://"+health+"/readyz?verbose", http.StatusInternalServerError, "failed")
	answers(t, "http://"+shown+"/metrics", http.StatusOK, watchMetric("", 0))
	w.create(t, use, "meanwhile")
	w.edit(t, use, "before", "size", int64(2))
	between.join(t)
	w.called(t, use, j, "meanwhile", "make (create, attempt 1)")
	w.called(t, use, j, "before", "make (create, attempt 1)", "resize (update, attempt 1)")
	answers(t, "http://"+health+"/readyz?verbose", http.StatusOK, "ok")
	answers(t, "http://"+shown+"/metrics", http.StatusOK, watchMetric("", 1))
	stop()
	w.delete(t, use, "before")
	w.delete(t, use, "meanwhile")
}

// watchMetric is the metric of the watch of widgets in a namespace, or in all if that is "".
func watchMetric(namespace string, healthy int) string {
	return fmt.Sprintf(`einmal_watch_healthy{namespace="%s",operator="%s",resource="widgets.%s"} %d`, namespace, fixture.Identity, fixture.Group, healthy)
}

// answers waits until an address answers with a code, and with words in its text.
func answers(t *testing.T, address string, code int, words string) {
	t.Helper()
	cluster.Eventually(t, address+" says "+words, func(ctx context.Context) error {
		got, text, err := cluster.Fetch(ctx, address)
		if err == nil && (got != code || !strings.Contains(text, words)) {
			err = fmt.Errorf("%d: %.200s", got, text)
		}
		return err
	})
}
