package mariadb

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/einmal-operators/einmal/credential"
	"github.com/einmal-operators/einmal/operators/database/engine"
)

const password = "The0Password0Of0The0Test"

func someLogin() engine.Login {
	return engine.Login{Host: "db.example", Port: 3306, Database: "app", Username: "app", Password: credential.NewPassword(password)}
}

func TestAClientLogsInAndAsks(t *testing.T) {
	s := serve(t, script{greeting: greeting(method), login: accepted(), query: [][]byte{{1}, column(), row("1000 125\n"), end()}})
	if err := s.client().Try(t.Context(), someLogin()); err != nil {
		t.Errorf("a login: %v", err)
	}
	s.stop()
	for _, packet := range s.packets()[1:] {
		if quit := []byte{1}; !bytes.Equal(packet, quit) {
			t.Errorf("after the login the client sends %q", packet)
		}
	}
	s = serve(t, script{greeting: greeting(method), login: switchTo(method), query: [][]byte{{1}, column(), row("1000 125\nd0bb1612"), end()}})
	if state, err := s.client().Ask(t.Context(), someLogin()); err != nil || state.Used != 88 || state.Configuration != "d0bb1612" {
		t.Errorf("the state is %v, %v", state, err)
	}
	s = serve(t, script{greeting: greeting(method), login: accepted(), query: [][]byte{refusal(1370, "execute command denied")}})
	_, err := s.client().Ask(t.Context(), someLogin())
	if err == nil || err.Error() != "ask the server for its state: Error 1370 (28000): execute command denied" {
		t.Errorf("a refused question: %v", err)
	}
}

func TestErrorsAreExplained(t *testing.T) {
	const prefix = "log in as app: "
	for _, test := range []struct {
		name    string
		script  script
		want    string
		refused bool
	}{
		{name: "wrong password", script: script{login: refusal(1045, "Access denied")}, want: engine.ErrRefused.Error(), refused: true},
		{name: "other method", script: script{login: refusal(1698, "Access denied")}, want: engine.ErrRefused.Error(), refused: true},
		{name: "no right", script: script{login: refusal(1044, "Access denied to database")}, want: "the server answers Access denied to database (1044)"},
		{name: "no database", script: script{login: refusal(1049, "Unknown database")}, want: "the server answers Unknown database (1049)"},
		{name: "too busy", script: script{greeting: refusal(1040, "Too many connections")}, want: engine.ErrFull.Error() + ": the server answers Too many connections (1040)"},
		{name: "user too busy", script: script{login: refusal(1203, "User app already has more than 'max_user_connections'")}, want: engine.ErrFull.Error() + ": the server answers User app already has more than 'max_user_connections' (1203)"},
		{name: "silent end", script: script{}, want: "EOF"},
		{name: "other protocol", script: script{greeting: []byte("HTTP/1.1 400 Bad Request")}, want: "the server sends a malformed greeting"},
		{name: "short greeting", script: script{greeting: greeting("")[:30]}, want: "the server sends a malformed greeting"},
		{name: "short error", script: script{greeting: []byte{0xff, 1, 2}}, want: "the server sends a malformed greeting"},
		{name: "short acceptance", script: script{login: []byte{0, 0, 0}}, want: "the server accepts the login with a malformed packet"},
		{name: "long numbers", script: script{login: []byte{0, 0xfe, 0, 0, 0, 0, 0}}, want: "the server accepts the login with a malformed packet"},
		{
			name: "short challenge", script: script{login: append([]byte{0xfe}, method+"\x00short"...)},
			want: "the server sends a challenge of 5 bytes, want 20",
		},
		{name: "long packet", script: script{greeting: make([]byte, limit+1)}, want: "the server sends a packet of 4097 bytes, want from 1 to 4096"},
	} {
		if test.script.greeting == nil {
			test.script.greeting = greeting(method)
		}
		if test.name == "silent end" {
			test.script.greeting = nil
		}
		err := serve(t, test.script).client().Try(t.Context(), someLogin())
		if err == nil || err.Error() != prefix+test.want || errors.Is(err, engine.ErrRefused) != test.refused {
			t.Errorf("%s: %v, want %s", test.name, err, prefix+test.want)
		}
	}
}

func TestAServerThatPretendsDoesNotGetThePassword(t *testing.T) {
	const asks = `log in as app: the server asks for the password by "NAME"; use mysql_native_password, which keeps it from a server that pretends to be this one`
	const other = `log in as app: the server answers the login with a packet of the kind 0x01`
	key := privateKey(t)
	for _, test := range []struct {
		name, want string
		script     script
	}{
		{"mysql_clear_password", asks, script{login: switchTo("mysql_clear_password")}},
		{"caching_sha2_password", asks, script{login: switchTo("caching_sha2_password")}},
		{"sha256_password", asks, script{login: switchTo("sha256_password")}},
		{"mysql_old_password", asks, script{login: switchTo("mysql_old_password")}},
		{"mysql_old_password", asks, script{login: []byte{0xfe}}},
		{"dialog", asks, script{login: switchTo("dialog")}},
		{"mysql_clear_password", asks, script{greeting: greeting("mysql_clear_password"), login: accepted()}},
		{"caching_sha2_password", asks, script{greeting: greeting("caching_sha2_password"), login: []byte{1, 4}}},
		{"sha256_password", asks, script{greeting: greeting("sha256_password"), login: encode(&key.PublicKey)}},
		{"", other, script{login: encode(&key.PublicKey)}},
		{"", other, script{login: []byte{1, 4}}},
	} {
		if test.script.greeting == nil {
			test.script.greeting = greeting(method)
		}
		test.script.key = key
		s := serve(t, test.script)
		want := strings.Replace(test.want, "NAME", test.name, 1)
		if err := s.client().Try(t.Context(), someLogin()); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", test.name, err, want)
		}
		s.stop()
		if s.knows(password) {
			t.Errorf("%s: the server gets the password", test.name)
		}
	}
}

// The driver alone gives the password away. If it no longer does, the guard can go.
func TestTheDriverNeedsTheGuard(t *testing.T) {
	for _, name := range []string{"caching_sha2_password", "sha256_password"} {
		s := serve(t, script{greeting: greeting(method), login: switchTo(name), key: privateKey(t)})
		settings := Client{Dial: s.dial}.settings(someLogin(), &guard{})
		settings.DialFunc = s.dial
		connector, err := mysql.NewConnector(settings)
		if err != nil {
			t.Fatal(err)
		}
		connection, err := connector.Connect(t.Context())
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		_ = connection.Close()
		s.stop()
		if !s.knows(password) {
			t.Errorf("%s: the server does not get the password", name)
		}
	}
}

func TestAServerGetsNoFileAndNoMemory(t *testing.T) {
	const secret = "content-of-a-file"
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(secret), 0o600); err != nil {
		t.Fatal(err)
	}
	const columns = "the server does not answer with one column"
	for _, test := range []struct {
		name, want string
		answers    [][]byte
	}{
		{"a file", columns, [][]byte{append([]byte{0xfb}, path...)}},
		{"many columns", columns, [][]byte{{0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0}}},
		{"no columns", columns, [][]byte{accepted()}},
		{"a malformed column", "malformed packet", [][]byte{{1}, column()[:12], end(), end()}},
		{"a long row", "the server sends a packet of", [][]byte{{1}, column(), row(strings.Repeat("x", limit)), end()}},
		{"no row", "EOF", [][]byte{{1}, column(), end()}},
		{"null", `the server says "" of its volume`, [][]byte{{1}, column(), {0xfb}, end()}},
	} {
		s := serve(t, script{greeting: greeting(method), login: accepted(), query: test.answers})
		if state, err := s.client().Ask(t.Context(), someLogin()); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, %v; want %s", test.name, state, err, test.want)
		}
		s.stop()
		if s.knows(secret) {
			t.Errorf("%s: the server gets a file", test.name)
		}
	}
}

func TestAServerThatSaysNothingIsLeft(t *testing.T) {
	for name, silent := range map[string]script{"at the start": {silent: true}, "after the login": {greeting: greeting(method), login: accepted(), silent: true}} {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		_, err := serve(t, silent).client().Ask(ctx, someLogin())
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) || strings.Contains(err.Error(), password) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestErrorsDoNotContainThePassword(t *testing.T) {
	refused := serve(t, script{greeting: greeting(method), login: refusal(1045, "Access denied")})
	ended := serve(t, script{greeting: greeting(method)})
	unreachable := serve(t, script{})
	unreachable.close()
	for _, s := range []*server{refused, ended, unreachable} {
		if _, err := s.client().Ask(t.Context(), someLogin()); err == nil || strings.Contains(err.Error(), password) {
			t.Errorf("the error is %v", err)
		}
	}
}
