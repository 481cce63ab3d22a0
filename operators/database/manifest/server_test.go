package manifest

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal-operators/einmal/einmaltest"
)

// The programs that server.sh calls, with answers of the test. TestNodeRunsStandbys and TestNodeSwitchesOver run the real ones.
const programs = `
postgres() { echo 'postgres (PostgreSQL) 16.4'; }
flock() { :; }
psql() {
	for statement; do :; done
	echo "$statement" >>"$TEST/asked"
	answer "$statement" || { echo 'psql: error' >&2; return 2; }
}
pg_basebackup() {
	mkdir "$PGDATA.new"
	[ ! -e "$TEST/breaks" ] || return 1
	echo copied >>"$TEST/asked"
}
df() { printf 'Filesystem 1024-blocks Used Available\nx 100 50 %s x\n' "$(cat "$TEST/free")"; }
pg_controldata() { control_file; }
sync() { :; }
sleep() { :; }
`

// What a volume becomes in a Pod that is a standby depends on what it holds and on what the primary says.
func TestTheVolumeOfAStandbyIsKeptOnlyIfThePrimaryHasAllOfIt(t *testing.T) {
	const (
		history   = "00000003.history|1\t0/5000100\tno recovery target specified\n\n2\t1/00000200\tno recovery target specified\n"
		reserved  = "physical|0/3000000|1"
		gone      = "||"
		kept      = "kept as a standby"
		again     = "copied"
		signalled = "standby"
	)
	// The fields identity, history and slot are the answers of the primary to IDENTIFY_SYSTEM, TIMELINE_HISTORY and READ_REPLICATION_SLOT. With "", it does
	// not answer.
	tests := map[string]struct {
		signal                      string
		state, timeline, checkpoint string
		identity, history, slot     string
		want                        string
	}{
		"a standby":                                {signalled, "shut down in recovery", "3", "1/300", "7|3|1/400", history, reserved, kept},
		"a standby whose slot is gone":             {signalled, "shut down in recovery", "3", "1/300", "7|3|1/400", history, gone, again},
		"a standby and a primary that is away":     {signalled, "shut down in recovery", "3", "1/300", "", "", "", kept},
		"the connection breaks after one question": {signalled, "shut down in recovery", "3", "1/300", "7|3|1/400", history, "", kept},
		"a standby of another database":            {signalled, "shut down in recovery", "3", "1/300", "8|3|1/400", history, reserved, "OtherDatabase"},
		"a former primary":                         {"", "shut down", "2", "1/1A8", "7|3|1/400", history, reserved, kept},
		"a primary of an earlier time":             {"", "shut down", "1", "0/5000088", "7|3|1/400", history, reserved, kept},
		"a former primary without an answer":       {"", "shut down", "2", "1/1A8", "7|3|1/400", "", reserved, "CopyFailed"},
		"a former primary whose slot is gone":      {"", "shut down", "2", "1/1A8", "7|3|1/400", history, gone, again},
		"a former primary that wrote more":         {"", "shut down", "2", "1/200", "7|3|1/400", history, reserved, again},
		"a former primary that was killed":         {"", "in production", "2", "1/1A8", "7|3|1/400", history, reserved, again},
		"a database that the primary is not from":  {"", "shut down", "3", "1/1A8", "7|3|1/400", history, reserved, "NotACopy"},
		"a primary that was never a standby":       {"", "shut down", "1", "1/1A8", "7|1|1/400", "", reserved, "NotACopy"},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			dir := standbyPod(t)
			if test.signal != "" {
				place(t, dir, "data/pgdata/standby.signal", "")
			}
			cmd := script(t, dir, "data", withAnswers(answers{
				test.state, test.timeline, test.checkpoint, test.identity, test.history, test.slot,
			}))
			out, err := cmd.CombinedOutput()
			if diff := cmp.Diff(test.want, outcome(dir)); diff != "" {
				t.Errorf("outcome (-want +got):\n%s\n%v: %s", diff, err, out)
			}
			if _, err := os.Stat(filepath.Join(dir, "run/postgresql/scripts/common.sh")); err != nil {
				t.Errorf("the Pod keeps no scripts for its server: %v", err)
			}
		})
	}
}

// standbyPod returns a folder with the files of a Pod that is a standby and has a volume with data.
func standbyPod(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	place(t, dir, "pod/annotations", `database.einmal.dev/grant="u standby"`+"\n")
	place(t, dir, "secret/replication", "secret")
	place(t, dir, "run/postgresql/none", "")
	place(t, dir, "data/pgdata/PG_VERSION", "16")
	place(t, dir, "free", "1000000")
	return dir
}

// answers are what the control file and the primary say.
type answers struct{ state, timeline, checkpoint, identity, history, slot string }

// withAnswers returns the script of a server that gets answers.
func withAnswers(from answers) string {
	text := "answer() { case $1 in\n" + answer("IDENTIFY_SYSTEM", from.identity) + answer("TIMELINE_HISTORY 3", from.history) +
		answer("READ_REPLICATION_SLOT einmal_1", from.slot) + "*REPLICATION_SLOT*) ;;\n*) return 1 ;;\nesac; }\n" +
		"control_file() { cat <<END\nDatabase system identifier:           7\nDatabase cluster state:               " + from.state +
		"\nLatest checkpoint location:           " + from.checkpoint + "\nLatest checkpoint's TimeLineID:       " + from.timeline + "\nEND\n}\n"
	return strings.Replace(postgresqlServer, "umask 077\n", "umask 077\n"+programs+text, 1)
}

// What the volume of a standby holds is kept until a copy of the primary is complete, if there is room for both. A copy that has begun is made, also if the
// primary has a slot for the standby again.
func TestTheVolumeOfAStandbyIsKeptUntilItsCopyIsComplete(t *testing.T) {
	lost := answers{"shut down in recovery", "3", "1/300", "7|3|1/400", "", "||"}
	reserved := lost
	reserved.slot = "physical|0/3000000|1"
	for title, test := range map[string]struct {
		free string
		kept bool
	}{"room for both": {"1000000", true}, "no room": {"3", false}} {
		t.Run(title, func(t *testing.T) {
			dir := standbyPod(t)
			place(t, dir, "data/pgdata/standby.signal", "")
			place(t, dir, "free", test.free)
			place(t, dir, "breaks", "")
			expectOutcome(t, dir, lost, "CopyFailed")
			_, err := os.Stat(filepath.Join(dir, "data/pgdata/PG_VERSION"))
			if kept := err == nil; kept != test.kept {
				t.Errorf("the data is kept: %t, want %t", kept, test.kept)
			}
			_, _ = os.Remove(filepath.Join(dir, "breaks")), os.Remove(filepath.Join(dir, "said"))
			expectOutcome(t, dir, reserved, "copied")
			names, err := filepath.Glob(filepath.Join(dir, "data/*"))
			if err != nil {
				t.Fatal(err)
			}
			if want := []string{dir + "/data/lock", dir + "/data/pgdata"}; !slices.Equal(names, want) {
				t.Errorf("the volume has %q, want %q", names, want)
			}
		})
	}
}

// expectOutcome runs the command "data" of a Pod and expects its outcome.
func expectOutcome(t *testing.T, dir string, from answers, want string) {
	t.Helper()
	out, err := script(t, dir, "data", withAnswers(from)).CombinedOutput()
	if got := outcome(dir); got != want {
		t.Errorf("the outcome is %q, want %q; %v: %s", got, want, err, out)
	}
}

// A crash while a complete copy replaces what the volume held loses nothing.
func TestACompleteCopyReplacesTheDataAfterACrash(t *testing.T) {
	for title, left := range map[string][]string{
		"before it has its name": {"data/pgdata.old/PG_VERSION", "data/pgdata.new/PG_VERSION", "data/pgdata.new/standby.signal", "data/copying"},
		"afterwards":             {"data/pgdata.old/PG_VERSION", "data/pgdata/PG_VERSION", "data/pgdata/standby.signal", "data/copying"},
	} {
		t.Run(title, func(t *testing.T) {
			dir := standbyPod(t)
			if err := os.RemoveAll(filepath.Join(dir, "data")); err != nil {
				t.Fatal(err)
			}
			for _, name := range left {
				place(t, dir, name, "16")
			}
			expectOutcome(t, dir, answers{"shut down in recovery", "3", "1/300", "7|3|1/400", "", "physical|0/3000000|1"}, "kept as a standby")
			if names, err := filepath.Glob(filepath.Join(dir, "data/pgdata*")); err != nil || len(names) != 1 {
				t.Errorf("the volume has %q: %v", names, err)
			}
		})
	}
}

// A server of MariaDB that gets SIGTERM while it starts never ends. A Pod that is deleted then would stay until the kubelet kills it.
func TestAServerOfMariaDBThatStartsIsStoppedWhenItAnswers(t *testing.T) {
	dir := t.TempDir()
	place(t, dir, "pod/annotations", `database.einmal.dev/grant="u 1"`+"\n")
	place(t, dir, "configuration", "")
	place(t, dir, "data/none", "")
	place(t, dir, "bin/flock", "")
	place(t, dir, "bin/mariadb-admin", "#!/bin/sh\ntouch $TEST/asked\n[ -e $TEST/ready ]\n")
	place(t, dir, "bin/mariadbd", "#!/bin/sh\ntrap 'ls $TEST/ready; exit 0' TERM\ntouch $TEST/starts\nwhile /bin/sleep 0.05; do :; done\n")
	place(t, dir, "bin/sleep", "#!/bin/sh\n[ $1 != 5 ] || touch $TEST/watched\nexec /bin/sleep $1\n")
	cmd := script(t, dir, "server", mariadbServer)
	out, err := os.Create(filepath.Join(dir, "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = out.Close() }() // The test reads the file itself.
	// The loop that measures the volume ends with the container, which is a process group here.
	cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = out, out, &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }() // It can have ended.
	await := func(name string) {
		einmaltest.Eventually(t, name+" exists", func(context.Context) error {
			_, err := os.Stat(filepath.Join(dir, name))
			return err
		})
	}
	await("starts")
	await("watched") // Before, the shell does not handle the signal yet.
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	await("asked")
	place(t, dir, "ready", "")
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	said, err := os.ReadFile(out.Name())
	if err != nil {
		t.Fatal(err)
	}
	if want := "the operator says: 1\n" + dir + "/ready\nthe server ended with 0\n"; string(said) != want {
		t.Errorf("it says %q, want %q", said, want)
	}
}

// script returns a command of a script server.sh, with files below dir.
func script(t *testing.T, dir, mode, text string) *exec.Cmd {
	t.Helper()
	own := strings.NewReplacer(" /data", " "+dir+"/data", ">>/data/", ">>"+dir+"/data/", "/pod/", dir+"/pod/", "/secret/", dir+"/secret/", "/run/mysqld", dir+"/run/mysqld",
		"/dev/termination-log", dir+"/said", "/config/", dir+"/")
	place(t, dir, "server.sh", own.Replace(text))
	place(t, dir, "common.sh", own.Replace(commonScript))
	cmd := exec.CommandContext(t.Context(), "sh", filepath.Join(dir, "server.sh"), mode)
	cmd.Env = []string{
		"PATH=" + filepath.Join(dir, "bin") + ":" + os.Getenv("PATH"), "TEST=" + dir, "PGDATA=" + dir + "/data/pgdata", "PGHOST=" + dir + "/run/postgresql",
		"POD_UID=u", "POD_NAME=db-1", "MAJOR=16", "PRIMARY=db-rw",
	}
	return cmd
}

// answer is a case of what the primary answers.
func answer(statement, text string) string {
	if text == "" {
		return "'" + statement + "') return 1 ;;\n"
	}
	return "'" + statement + "') printf '%s' '" + text + "' ;;\n"
}

// outcome returns what server.sh has done with the volume: the reason of its failure, or whether it has copied the primary.
func outcome(dir string) string {
	if said, err := os.ReadFile(filepath.Join(dir, "said")); err == nil {
		reason, _, _ := strings.Cut(string(said), ":")
		return reason
	}
	asked, _ := os.ReadFile(filepath.Join(dir, "asked"))
	if strings.Contains(string(asked), "copied") {
		return "copied"
	}
	if _, err := os.Stat(filepath.Join(dir, "data/pgdata/standby.signal")); err != nil {
		return "not a standby"
	}
	return "kept as a standby"
}

// place writes a file that can be run.
func place(t *testing.T, dir, name, text string) {
	t.Helper()
	file := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
}
