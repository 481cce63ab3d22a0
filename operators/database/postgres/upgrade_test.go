package postgres_test

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/einmal-operators/einmal/credential"
	"github.com/einmal-operators/einmal/einmaltest"
	v1 "github.com/einmal-operators/einmal/operators/database/api/v1"
	"github.com/einmal-operators/einmal/operators/database/engine"
	"github.com/einmal-operators/einmal/operators/database/manifest"
	"github.com/einmal-operators/einmal/operators/database/postgres"
)

// What commit 82591d1 executed in a new database.
//
//go:embed testdata/82591d1.sql
var earlierDatabase string

// A database that an earlier operator has created gets the functions of this one when its Pod is replaced, and before that the operator can ask it. Apps cannot
// take all connections.
func TestADatabaseOfAnEarlierOperatorIsUpgraded(t *testing.T) {
	p := newPod(t, "max_connections = '12'\n")
	p.create(earlierDatabase)
	stop := p.start("postgres", "-D", p.dir+"/data/pgdata", "-k", p.dir+"/run", "-c", "hba_file="+p.dir+"/config/pg_hba.conf")
	p.awaitState("it answers", func(state engine.State) error {
		if state.Timeline != 0 || state.Forks != nil {
			return fmt.Errorf("it has functions for timelines: %+v", state)
		}
		return nil
	})
	stop()

	p.start("sh", p.dir+"/config/server.sh", "server")
	p.awaitState("it has the new functions", func(state engine.State) error {
		if state.Timeline != 1 || state.Forks == nil {
			return fmt.Errorf("it has no functions for timelines: %+v", state)
		}
		return nil
	})
	if state, err := p.ask(); err != nil || state.Unlogged {
		t.Errorf("it has unlogged tables: %+v, %v", state, err)
	}
	p.run(p.command("psql", "--no-psqlrc", "--dbname", "app", "--command", "create unlogged table fast (n int)"), "")
	if state, err := p.ask(); err != nil || !state.Unlogged {
		t.Errorf("it has no unlogged tables: %+v, %v", state, err)
	}
	p.takeAllConnections(4) // Of 12, three are left for superusers, and five for the operator and for backups.
	if _, err := p.ask(); err != nil {
		t.Errorf("apps have all connections: %v", err)
	}
	app := engine.Login{Host: "127.0.0.1", Port: 5432, Database: "app", Username: "app", Password: credential.NewPassword("app")}
	if err := p.client().Try(t.Context(), app); !errors.Is(err, engine.ErrFull) {
		t.Errorf("apps have all connections: %v", err)
	}
}

// pod stands for the container of a server: a folder with the scripts and the files of its ConfigMap.
type pod struct {
	*testing.T

	dir string
	// as is the user that runs the server, nil for the present one. PostgreSQL does not run as root.
	as *syscall.Credential
}

// newPod makes the files of a Pod.
func newPod(t *testing.T, parameters string) pod {
	t.Helper()
	dir, err := os.MkdirTemp("", "pg") //nolint:usetesting // The path of a socket must be short.
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	p := pod{T: t, dir: dir}
	if os.Getuid() == 0 {
		const overflow = 65534 // The user without rights, on every Linux.
		p.as = &syscall.Credential{Uid: overflow, Gid: overflow}
	}
	db := &v1.Database{ObjectMeta: metav1.ObjectMeta{Name: "db"}, Spec: v1.DatabaseSpec{Engine: v1.PostgreSQL}}
	config := manifest.Children(db, manifest.Settings{Parameters: parameters})[0].(*corev1.ConfigMap) //nolint:forcetypeassert // It is the first.
	for name, text := range config.Data {
		p.place("config/"+name, text)
	}
	if err := os.Symlink("now", dir+"/config/..data"); err != nil { // The kubelet points it to the files.
		t.Fatal(err)
	}
	p.place("pod/annotations", manifest.GrantAnnotation+"=\"u 1\"\n")
	p.place("run/volume", "100 50")
	p.place("data/lock", "")
	return p
}

// own puts paths of the container into the folder. Nothing listens on TCP, the superuser is that of the test, and no script waits for the disk of the machine.
func (p pod) own(text string) string {
	return strings.NewReplacer(" /data", " "+p.dir+"/data", "/data/", p.dir+"/data/", "/pod/", p.dir+"/pod/", "/run/postgresql", p.dir+"/run",
		"/dev/termination-log", p.dir+"/said", "/config/", p.dir+"/config/", "/secret/", p.dir+"/secret/", "/backup/", p.dir+"/backup/",
		"/backups", p.dir+"/backup", "/tmp/", p.dir+"/", "\tsync\n", "\t:\n", "listen_addresses = '*'", "listen_addresses = ''", "local all postgres peer", "local all postgres trust").Replace(text)
}

// place writes a file that belongs to the user of the server.
func (p pod) place(name, text string) {
	p.Helper()
	file := filepath.Join(p.dir, name)
	err := os.MkdirAll(filepath.Dir(file), 0o700)
	if err == nil {
		err = os.WriteFile(file, []byte(p.own(text)), 0o600)
	}
	for at := file; err == nil && p.as != nil && len(at) >= len(p.dir); at = filepath.Dir(at) {
		err = os.Chown(at, int(p.as.Uid), int(p.as.Gid))
	}
	if err != nil {
		p.Fatal(err)
	}
}

// command returns a command in the container.
func (p pod) command(program string, arguments ...string) *exec.Cmd {
	command := exec.Command(program, arguments...) //nolint:noctx // It ends with the test.
	path := programs(p.T)
	if !strings.Contains(program, "/") {
		if found := filepath.Join(path, program); fileExists(found) {
			command = exec.Command(found, arguments...) //nolint:noctx // It ends with the test.
		}
	}
	command.Dir = p.dir
	command.Env = []string{
		"PATH=" + path + ":" + os.Getenv("PATH"), "PGDATA=" + p.dir + "/data/pgdata", "PGHOST=" + p.dir + "/run", "PGUSER=postgres",
		"POD_UID=u", "POD_NAME=db-0", "MAJOR=15", "PRIMARY=db-rw", "APP_USERNAME=app", "APP_DATABASE=app", "LC_ALL=C.UTF-8",
	}
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: p.as}
	return command
}

func fileExists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

// programs returns the folder with the programs of PostgreSQL.
func programs(t *testing.T) string {
	t.Helper()
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin")
	if err != nil || len(found) == 0 {
		t.Fatalf("no PostgreSQL found: run tools/servers.sh; %v", err)
	}
	return slices.Max(found)
}

// create makes a database as the script of a Pod does, and executes statements in it.
func (p pod) create(statements string) {
	p.Helper()
	p.run(p.command("initdb", "--pgdata", p.dir+"/data/pgdata", "--username", "postgres", "--auth-local", "trust", "--no-instructions"), "")
	stop := p.start("postgres", "-D", p.dir+"/data/pgdata", "-k", p.dir+"/run", "-c", "listen_addresses=")
	defer stop()
	einmaltest.Eventually(p.T, "the server accepts connections", func(context.Context) error { return p.command("pg_isready").Run() })
	p.run(p.command("psql", "--no-psqlrc", "--set", "ON_ERROR_STOP=1", "--dbname", "postgres"), p.own(statements))
}

func (p pod) run(command *exec.Cmd, input string) {
	p.Helper()
	command.Stdin = strings.NewReader(input)
	if out, err := command.CombinedOutput(); err != nil {
		p.Fatalf("%s: %v: %s", command, err, out)
	}
}

// start starts a server, and returns what stops it.
func (p pod) start(program string, arguments ...string) (stop func()) {
	p.Helper()
	command := p.command(program, arguments...)
	out, err := os.Create(p.dir + "/out")
	if err != nil {
		p.Fatal(err)
	}
	command.Stdout, command.Stderr = out, out
	if err := command.Start(); err != nil {
		p.Fatal(err)
	}
	stop = sync.OnceFunc(func() {
		_ = syscall.Kill(command.Process.Pid, syscall.SIGTERM)
		_ = command.Wait() // The code depends on what was started.
		_ = syscall.Kill(-command.Process.Pid, syscall.SIGKILL)
		if said, err := os.ReadFile(out.Name()); p.Failed() {
			p.Logf("it said: %s, %v", said, err)
		}
		_ = out.Close()
	})
	p.Cleanup(stop)
	return stop
}

// client returns a client that connects to the socket of the server.
func (p pod) client() postgres.Client {
	return postgres.Client{Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", p.dir+"/run/.s.PGSQL.5432")
	}}
}

func (p pod) ask() (engine.State, error) {
	return p.client().Ask(p.Context(), engine.Login{
		Host: "127.0.0.1", Port: 5432, Database: "postgres", Username: manifest.Monitor, Password: credential.NewPassword("monitor"),
	})
}

// awaitState asks until the answer is right.
func (p pod) awaitState(what string, check func(engine.State) error) {
	p.Helper()
	einmaltest.Eventually(p.T, what, func(context.Context) error {
		state, err := p.ask()
		if err != nil {
			return err
		}
		return check(state)
	})
}

// takeAllConnections opens connections as an app until the server refuses them, and expects that it gets so many.
func (p pod) takeAllConnections(want int) {
	p.Helper()
	settings, err := pgx.ParseConfig("host=" + p.dir + "/run user=app password=app dbname=app")
	if err != nil {
		p.Fatal(err)
	}
	for got := range want + 1 {
		connection, err := pgx.ConnectConfig(p.Context(), settings)
		if err == nil {
			p.Cleanup(func() { _ = connection.Close(context.Background()) })
			continue
		}
		if answer, ok := errors.AsType[*pgconn.PgError](err); !ok || answer.Code != "53300" || got != want {
			p.Errorf("connection %d: %v", got+1, err)
		}
		return
	}
	p.Errorf("an app gets more than %d connections", want)
}
