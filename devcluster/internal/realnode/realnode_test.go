package realnode

import (
	"bufio"
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestMissingNamesEveryProblemAndEachRemedyOnce(t *testing.T) {
	if err := Missing(nil); err != nil {
		t.Error(err)
	}
	err := Missing([]Problem{{"runc is not installed", "apt-get install"}, {"nft is not installed", "apt-get install"}, {"no overlay", ""}})
	want := "run a real node: this machine cannot do it\n  runc is not installed\n  nft is not installed\n  no overlay\n" +
		"remedy: apt-get install\nremedy: or start simulated nodes: devcluster up"
	if err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

func TestAddressesOfTheNodeAreReachedInItsNetwork(t *testing.T) {
	for address, want := range map[string]bool{
		"10.250.0.1:10250": true, "10.96.0.1:443": true, "10.244.0.7:8443": true,
		"127.0.0.1:9443": false, "webhook.example.org:443": false, "192.168.1.1:443": false, "[::1]:443": false,
	} {
		if got := inNode(address); got != want {
			t.Errorf("%s: %t, want %t", address, got, want)
		}
	}
}

// echo answers each connection with what it gets.
func echo(t *testing.T) (address string) {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go serve(t.Context(), l, func(_ context.Context, conn net.Conn) {
		_, _ = io.Copy(conn, conn) // The client checks what comes back.
		_ = conn.Close()
	})
	return l.Addr().String()
}

// The path of the directory is longer than that of a socket can be.
func TestAConnectionGoesThroughTwoProxies(t *testing.T) {
	long := filepath.Join(t.TempDir(), strings.Repeat("long/", 40))
	if err := os.MkdirAll(long, 0o700); err != nil {
		t.Fatal(err)
	}
	dir, err := os.Open(long)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = dir.Close() }() // It was read.
	l, err := listenIn(dir, nodeSocket)
	if err != nil {
		t.Fatal(err)
	}
	go serve(t.Context(), l, connecting(func(address string) dialer { return dialing("tcp", address) }))
	through := func(address string) dialer { return throughProxy(dialing("unix", inDir(dir, nodeSocket)), address) }
	conn, err := through(echo(t))(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }() // It has ended.
	if _, err := io.WriteString(conn, "hello\n"); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(conn).ReadString('\n'); line != "hello\n" {
		t.Errorf("%q comes back: %v", line, err)
	}
	if _, err := through("127.0.0.1:1")(t.Context()); err == nil || !strings.Contains(err.Error(), "127.0.0.1:1") {
		t.Errorf("a port where nothing listens: %v", err)
	}
}

// Paths can contain any character.
func TestTheConfigurationQuotesPaths(t *testing.T) {
	data := filepath.Join(t.TempDir(), `a "b": {c}`)
	l := Layout{Data: data, Pki: filepath.Join(data, "pki")}
	if err := l.WriteConfig(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(l.config("kubelet.yaml"))
	if err != nil || !strings.Contains(string(text), `a \"b\": {c}/pki/ca.crt"`) {
		t.Errorf("%s: %v", text, err)
	}
	for _, name := range []string{"containerd.toml", "kube-proxy.yaml", "egress.yaml", "cni/cni.conflist"} {
		if _, err := os.Stat(l.config(name)); err != nil {
			t.Error(err)
		}
	}
}
