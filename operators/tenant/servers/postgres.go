package servers

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// The roles that a Postgres has from the beginning.
const (
	// superuser made the server. Tests look behind the scenes as it; nothing that is tested runs as it.
	superuser = "super"
	// adminRole is what an operator is given: CREATEROLE CREATEDB, and no superuser.
	adminRole = "admin"
)

// The files in the folder of a Postgres.
const (
	postgresLog  = "postgres.log"
	postgresData = "data"
)

// Postgres is a real PostgreSQL server on 127.0.0.1, with passwords checked (scram-sha-256), each statement logged, and nothing written
// to disk for good: it is for tests and development.
type Postgres struct {
	// Dir is where it keeps its files. It is made if it is not there. A server that was stopped goes on there, on the same port.
	Dir string
	// Settings are more of its settings, each "name=value".
	Settings []string

	port    int
	secret  string
	process *process
}

// startTime is how long a start may take. The recovery after a kill is in it, and what a killed server's processes take to end.
const startTime = 30 * time.Second

// Start starts the server, and returns when it takes connections. Root cannot run PostgreSQL: then the user postgres does.
func (p *Postgres) Start(ctx context.Context) error {
	if p.process != nil {
		return errors.New("PostgreSQL runs already")
	}
	bin, err := postgresBin()
	if err != nil {
		return err
	}
	who, err := postgresOwner()
	if err != nil {
		return err
	}
	if err := p.prepare(ctx, bin, who); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	for {
		before := p.Log()
		err := p.try(ctx, bin, who)
		if err == nil {
			return nil
		}
		said := strings.TrimPrefix(p.Log(), before)
		if !occupied(said) {
			return fmt.Errorf("PostgreSQL did not start: %w; it logged: %s", err, said)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("PostgreSQL did not start: processes of its last run are still there: %s", said)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// occupied tells from what a server logged that it did not start because processes of its last run are still there. When its first process is
// killed (EndWithParent does that), the others end as soon as they notice, which a session that is busy does late.
func occupied(logged string) bool {
	return strings.Contains(logged, "pre-existing shared memory block") || strings.Contains(logged, `lock file "postmaster.pid" already exists`)
}

// try starts the server once.
func (p *Postgres) try(ctx context.Context, bin string, who *owner) error {
	arguments := []string{
		"-D", filepath.Join(p.Dir, postgresData), "-p", strconv.Itoa(p.port), "-c", "listen_addresses=127.0.0.1",
		"-c", "unix_socket_directories=" + p.Dir, "-c", "fsync=off", "-c", "full_page_writes=off", "-c", "log_statement=all",
		"-c", "log_line_prefix=%m [%p] %q%u@%d %a: ", "-c", "shared_buffers=16MB",
	}
	for _, setting := range p.Settings {
		arguments = append(arguments, "-c", setting)
	}
	command := exec.Command(filepath.Join(bin, "postgres"), arguments...) //nolint:noctx,gosec // Stop ends it; the developer names the program.
	command.Dir = p.Dir
	EndWithParent(command, syscall.SIGKILL)
	who.runs(command)
	var err error
	if p.process, err = start(command, filepath.Join(p.Dir, postgresLog)); err != nil {
		return err
	}
	if err := p.ready(ctx); err != nil {
		return errors.Join(err, p.Kill())
	}
	return nil
}

// Stop ends the server in order, and all sessions with it. It can be started again.
func (p *Postgres) Stop() error { return p.end(syscall.SIGINT) } // The fast shutdown.

// Kill ends the server as a crash does: at once, and with nothing said to anybody. It can be started again.
func (p *Postgres) Kill() error { return p.end(syscall.SIGQUIT) } // The immediate shutdown, which takes the children along.

func (p *Postgres) end(signal syscall.Signal) error {
	running := p.process
	if running == nil {
		return nil
	}
	p.process = nil
	return running.stop(signal)
}

// DSN is how one reaches it as a superuser.
func (p *Postgres) DSN() string { return p.DSNOf(superuser, p.secret, "postgres") }

// AdminDSN is how one reaches it as the admin that an operator is given.
func (p *Postgres) AdminDSN() string { return p.DSNOf(adminRole, p.secret, "postgres") }

// DSNOf is how a user reaches a database of it.
func (p *Postgres) DSNOf(user, password, database string) string {
	address := url.URL{
		Scheme: "postgres", User: url.UserPassword(user, password), Host: p.Address(), Path: "/" + database, RawQuery: "sslmode=disable",
	}
	return address.String()
}

// Address is its host and port.
func (p *Postgres) Address() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(p.port)) }

// Log is all that the server has logged so far, each statement among it.
func (p *Postgres) Log() string {
	logged, err := os.ReadFile(filepath.Join(p.Dir, postgresLog))
	if err != nil {
		return err.Error()
	}
	return string(logged)
}

// prepare makes the folder and the database cluster in it, once, and finds what an earlier start chose.
func (p *Postgres) prepare(ctx context.Context, bin string, who *owner) error {
	if err := os.MkdirAll(p.Dir, 0o700); err != nil {
		return fmt.Errorf("make the folder of PostgreSQL: %w", err)
	}
	if err := who.gets(p.Dir); err != nil {
		return err
	}
	if err := p.choose(); err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(p.Dir, postgresData, "PG_VERSION")); err == nil {
		return nil
	}
	//nolint:gosec // The developer names the program.
	command := exec.CommandContext(ctx, filepath.Join(bin, "initdb"), "-D", postgresData, "-U", superuser, "-E", "UTF8", "--locale=C",
		"--auth=scram-sha-256", "--pwfile="+secretFile, "--no-sync")
	command.Dir = p.Dir
	who.runs(command)
	if told, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w: %s", err, told)
	}
	return nil
}

// choose takes the port and the password of an earlier start, or new ones.
func (p *Postgres) choose() error {
	port, err := kept(p.Dir, portFile, freePort)
	if err != nil {
		return err
	}
	if p.port, err = strconv.Atoi(port); err != nil {
		return fmt.Errorf("the port of PostgreSQL, in %s: %w", p.Dir, err)
	}
	p.secret, err = kept(p.Dir, secretFile, func() (string, error) { return rand.Text(), nil })
	return err
}

// ready waits until the server takes connections, and makes the admin if it is not there.
func (p *Postgres) ready(ctx context.Context) error {
	for {
		connection, err := pgx.Connect(ctx, p.DSN())
		if err == nil {
			return errors.Join(p.makeAdmin(ctx, connection), connection.Close(ctx))
		}
		select {
		case <-p.process.ended:
			return errors.New("it ended")
		case <-ctx.Done():
			return err
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (p *Postgres) makeAdmin(ctx context.Context, connection *pgx.Conn) error {
	var there bool
	if err := connection.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_roles WHERE rolname = $1)", adminRole).Scan(&there); err != nil || there {
		return err
	}
	// The log is for what the tested code says, and holds no password of ours.
	if _, err := connection.Exec(ctx, "SET log_statement = 'none'"); err != nil {
		return err
	}
	_, err := connection.Exec(ctx, fmt.Sprintf("CREATE ROLE %s LOGIN CREATEROLE CREATEDB PASSWORD '%s'", adminRole, p.secret))
	return err
}

// postgresBin finds the programs of PostgreSQL: in the folder that EINMAL_POSTGRES_BIN names, on the PATH, where Debian has them.
func postgresBin() (string, error) {
	if named := os.Getenv("EINMAL_POSTGRES_BIN"); named != "" {
		return named, nil
	}
	if found, err := exec.LookPath("initdb"); err == nil {
		if found, err = filepath.EvalSymlinks(found); err == nil {
			return filepath.Dir(found), nil
		}
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if len(found) == 0 {
		return "", errors.New("no PostgreSQL found: run tools/servers.sh, or name the folder of initdb in EINMAL_POSTGRES_BIN")
	}
	newest := slices.MaxFunc(found, func(a, b string) int { return cmp.Compare(major(a), major(b)) })
	return filepath.Dir(newest), nil
}

// major is the version in the path of a program of PostgreSQL, where Debian has it.
func major(path string) float64 {
	version, _ := strconv.ParseFloat(filepath.Base(filepath.Dir(filepath.Dir(path))), 64) // 0 if there is none.
	return version
}
