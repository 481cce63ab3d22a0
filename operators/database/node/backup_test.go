package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal-operators/einmal/einmaltest"
	"github.com/einmal-operators/einmal/internal/testkit/realnode"
)

// restored is a database that begins with a backup of orders-db.
const restored = `{"apiVersion":"database.einmal.dev/v1","kind":"Database","metadata":{"namespace":"production","name":"%s"},
	"spec":{"engine":"postgresql","version":"%s","storage":"1Gi","backupEnabled":false,"bootstrap":{"fromBackup":%s}}}`

// requestBackup asks for a backup of a database, and waits until it is in the status.
func (s *started) requestBackup(t *testing.T, database, request string) {
	t.Helper()
	s.MustKubectl(t, "annotate", "--namespace", "production", "--overwrite", "database", database, "database.einmal.dev/backup="+request)
	s.await(t, "database", database, ".status.backup.lastSuccess.job", database+"-backup-"+request)
}

// isRestored makes a backup, and restores it into a new Database.
func (s *started) isRestored(t *testing.T, version, table string) {
	s.requestBackup(t, "orders-db", "first")
	s.await(t, "database", "orders-db", ".status.backup.lastSuccess.source", "standby")
	s.MustKubectl(t, "apply", "--filename", s.write(t, fmt.Sprintf(restored, "copy", version, `{"database":"orders-db"}`)))
	s.awaitReason(t, "copy", "DatabaseReady")
	s.inPod(t, "copy", "select count(*) from "+table, s.inOriginal(t, "select count(*) from "+table))
	s.await(t, "database", "copy", ".status.restoredFrom", s.location(t))
}

// inOriginal returns the result of a statement in the database that the backup is of.
func (s *started) inOriginal(t *testing.T, statement string) string {
	t.Helper()
	out, err := s.psql(0, statement)(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(out)
}

// A backup contains all that apps have, and a new database begins with it. What is wrong with a backup is said, and nothing half-filled is ever ready.
func TestNodeRestoresBackups(t *testing.T) {
	s := &started{realnode.Start(t, script, ready)}
	s.MustKubectl(t, "label", "namespace", "production", "pod-security.kubernetes.io/enforce=restricted")
	s.connect(t, "16")
	s.awaitServers(t, "Ready Streaming")
	contents, err := os.ReadFile("testdata/contents.sql")
	if err != nil {
		t.Fatal(err)
	}
	s.inOriginal(t, string(contents))

	t.Run("the copy has all that the original has", func(t *testing.T) {
		s.isRestored(t, "16", "item")
		if diff := cmp.Diff(s.schema(t, "orders-db-0"), s.schema(t, "copy-0")); diff != "" {
			t.Errorf("the schema (-original +copy):\n%s", diff)
		}
		for _, query := range []string{
			"select sum(hashtext(item::text)) from item", "select string_agg(owner, ',' order by owner) from secured", "select * from total",
			"select n from part", "select convert_from(lo_get(oid), 'utf8') from pg_largeobject_metadata", "select rolname, rolcanlogin from pg_roles where rolname = 'reporting'",
		} {
			s.inPod(t, "copy", query, s.inOriginal(t, query))
		}
	})
	t.Run("the drill of the docs succeeds", s.drills)
	s.MustKubectl(t, "apply", "--filename", "testdata/backups.yaml")
	s.await(t, "pod", "backups", ".status.phase", "Running")
	t.Run("a backup that cannot be restored is said", s.cannotBeRestored)
	t.Run("a restore that is killed begins again", s.isRestoredAfterAKill)
	t.Run("kubectl apply --prune deletes nothing", s.isNotPruned)
	t.Run("what cannot be restored is named", s.namesWhatIsMissing)
	t.Run("backups are made on the schedule, and old ones are deleted", s.keepsSomeBackups)
	t.Run("a backup that is killed leaves nothing that looks whole", s.backsUpAfterAKill)
	t.Run("a full volume is said and can grow", s.backsUpWhenThereIsRoom)
	t.Run("a backup that fails is said", func(t *testing.T) {
		password := s.MustKubectl(t, "get", "secret", "--namespace", "production", "orders-db-backup", "--output", "go-template={{.data.password | base64decode}}")
		s.inOriginal(t, "alter role einmal_backup password 'another'")
		s.MustKubectl(t, "annotate", "--namespace", "production", "--overwrite", "database", "orders-db", "database.einmal.dev/backup=failing")
		s.awaitBackups(t, "BackupFailed")
		s.inOriginal(t, "alter role einmal_backup password '"+password+"'")
		s.requestBackup(t, "orders-db", "healed")
		s.awaitBackups(t, "BackupRecent")
	})
	t.Run("passwords are in Secrets only", s.keepsPasswords)
}

// drills runs the commands of the restore drill, as a person does.
func (s *started) drills(t *testing.T) {
	page, err := os.ReadFile("../../../docs/operators/database-restore-drill.md")
	if err != nil {
		t.Fatal(err)
	}
	var commands strings.Builder
	commands.WriteString("set -eu\n") // A person sees which command fails.
	for _, block := range strings.Split(string(page), "\n```sh\n")[1:] {
		command, _, _ := strings.Cut(block, "\n```")
		commands.WriteString(command + "\n")
	}
	out := s.Shell(t, commands.String())
	if !strings.Contains(out, "\nall tables are equal\n") || !strings.Contains(out, "\npublic.item|200000|") {
		t.Errorf("the output:\n%s", out)
	}
}

// awaitBackups waits until the condition BackupHealthy has a reason.
func (s *started) awaitBackups(t *testing.T, want string) {
	t.Helper()
	s.await(t, "database", "orders-db", `.status.conditions[?(@.type=="BackupHealthy")].reason`, want)
}

// schema returns the definitions of a database, without what differs between two dumps of the same.
func (s *started) schema(t *testing.T, pod string) []string {
	t.Helper()
	var kept []string
	for line := range strings.SplitSeq(s.MustKubectl(t, "exec", "--namespace", "production", pod, "--", "pg_dump", "--schema-only", "app"), "\n") {
		if !strings.HasPrefix(line, `\restrict`) && !strings.HasPrefix(line, `\unrestrict`) {
			kept = append(kept, line)
		}
	}
	return kept
}

// inBackups executes a command in the volume with the backups.
func (s *started) inBackups(t *testing.T, command string) string {
	t.Helper()
	return strings.TrimSpace(s.MustKubectl(t, "exec", "--namespace", "production", "backups", "--", "sh", "-c", command))
}

// cannotBeRestored creates a Database with a backup that does not exist, and then with one that is damaged. When it names one that is whole, it begins.
func (s *started) cannotBeRestored(t *testing.T) {
	all := s.inBackups(t, "echo 2*Z")
	whole := all[strings.LastIndex(all, " ")+1:]
	s.inBackups(t, "cp -r "+whole+" 20990101T000000Z && printf x | dd of=20990101T000000Z/dump bs=1 seek=5000 conv=notrunc")
	s.MustKubectl(t, "apply", "--filename", s.write(t, fmt.Sprintf(restored, "bad", "16", `{"database":"orders-db","name":"20200101T000000Z"}`)))
	s.awaitMessage(t, "bad", "there is no backup 20200101T000000Z in orders-db-backup; there are: "+all+" 20990101T000000Z")
	s.change(t, "bad", `{"bootstrap":{"fromBackup":{"name":null}}}`)
	s.awaitMessage(t, "bad", "the backup 20990101T000000Z is damaged")
	s.awaitReason(t, "bad", "RestoreFailed")
	s.change(t, "bad", `{"bootstrap":{"fromBackup":{"name":"`+whole+`"}}}`)
	s.awaitReason(t, "bad", "DatabaseReady")
	s.inPod(t, "bad", "select count(*) from item", "200000")
	s.inBackups(t, "rm -r 20990101T000000Z")
}

// isRestoredAfterAKill kills the program that restores.
func (s *started) isRestoredAfterAKill(t *testing.T) {
	s.MustKubectl(t, "apply", "--filename", s.write(t, fmt.Sprintf(restored, "killed", "16", `{"database":"orders-db"}`)))
	einmaltest.Eventually(t, "the restore is killed", func(ctx context.Context) error {
		if s.Kill(t, "pg_restore", "--verbose") > 0 {
			return nil
		}
		return errors.New("it does not run")
	})
	s.awaitReason(t, "killed", "RestoreFailed")
	s.awaitReason(t, "killed", "DatabaseReady")
	s.inPod(t, "killed", "select count(*) from item", "200000")
}

// keepsSomeBackups waits for a backup of the schedule, and makes more than are kept.
func (s *started) keepsSomeBackups(t *testing.T) {
	before, err := s.field(t.Context(), "database", "orders-db", ".status.backup.lastSuccess.job")
	if err != nil {
		t.Fatal(err)
	}
	s.change(t, "orders-db", `{"backup":{"schedule":"* * * * *","retention":{"count":2}}}`)
	awaitOutput(t, "a backup of the schedule", s.fieldOf("database", "orders-db", ".status.backup.lastSuccess.job"), func(job string) bool { return job != before })
	s.change(t, "orders-db", `{"backup":{"schedule":"0 3 * * *"}}`)
	s.requestBackup(t, "orders-db", "third")
	if names := strings.Fields(s.inBackups(t, "echo *")); len(names) != 3 || names[2] != "lock" {
		t.Errorf("the volume has %v, want two backups and the lock", names)
	}
	s.inBackups(t, "mkdir 20200101T000000Z")
	s.change(t, "orders-db", `{"backup":{"retention":{"count":null,"days":1}}}`)
	s.requestBackup(t, "orders-db", "fourth")
	if names := strings.Fields(s.inBackups(t, "echo *")); len(names) != 4 || names[0] == "20200101T000000Z" {
		t.Errorf("the volume has %v, want three backups and the lock", names)
	}
}

// backsUpAfterAKill kills a backup that waits for a table. The next attempt of the Job succeeds, and leaves nothing of the first one.
func (s *started) backsUpAfterAKill(t *testing.T) {
	before := len(strings.Fields(s.inBackups(t, "echo *Z")))
	locked := make(chan error, 1)
	go func() {
		_, err := s.psql(0, "begin; lock table item; select pg_sleep(600)")(t.Context()) // Until it is terminated.
		locked <- err
	}()
	s.inServer(t, 0, "select count(*) from pg_locks where relation = 'item'::regclass and mode = 'AccessExclusiveLock' and granted", "1")
	s.change(t, "orders-db", `{"backup":{"retention":{"count":100,"days":null}}}`)
	s.MustKubectl(t, "annotate", "--namespace", "production", "--overwrite", "database", "orders-db", "database.einmal.dev/backup=killed")
	einmaltest.Eventually(t, "a backup has begun", func(context.Context) error {
		if begun := s.inBackups(t, "echo *.part/roles"); strings.HasPrefix(begun, "*") {
			return errors.New("there is none")
		}
		return nil
	})
	if killed := s.Kill(t, "/bin/sh", "/config/backup.sh"); killed != 1 {
		t.Errorf("killed %d backups, want 1", killed)
	}
	if whole := len(strings.Fields(s.inBackups(t, "echo *Z"))); whole != before {
		t.Errorf("there are %d backups, before there were %d", whole, before)
	}
	s.inServer(t, 0, "select count(pg_terminate_backend(pid)) from pg_stat_activity where query like 'begin; lock table item%'", "1")
	if err := <-locked; err == nil {
		t.Error("the table was unlocked before the backup was killed")
	}
	s.await(t, "database", "orders-db", ".status.backup.lastSuccess.job", "orders-db-backup-killed")
	if names := strings.Fields(s.inBackups(t, "echo *")); len(names) != before+2 || strings.Contains(fmt.Sprint(names), ".part") {
		t.Errorf("the volume has %v, want %d backups and the lock", names, before+1)
	}
}

// backsUpWhenThereIsRoom fills the volume of the backups of a Database, and then lets it grow.
func (s *started) backsUpWhenThereIsRoom(t *testing.T) {
	s.MustKubectl(t, "apply", "--filename", s.write(t, `{"apiVersion":"database.einmal.dev/v1","kind":"Database","metadata":{"namespace":"production","name":"tight"},
		"spec":{"engine":"postgresql","version":"16","storage":"1Gi","backup":{"claim":{"storage":"300Mi"}}}}`))
	s.awaitReason(t, "tight", "DatabaseReady")
	pod, err := os.ReadFile("testdata/backups.yaml")
	if err != nil {
		t.Fatal(err)
	}
	filler := strings.NewReplacer("orders-db-backup", "tight-backup", "name: backups\n  namespace", "name: filler\n  namespace").Replace(string(pod))
	s.MustKubectl(t, "apply", "--filename", s.write(t, filler))
	s.await(t, "pod", "filler", ".status.phase", "Running")
	s.MustKubectl(t, "exec", "--namespace", "production", "filler", "--", "sh", "-c", "dd if=/dev/zero of=filler bs=1M; dd if=/dev/zero of=more bs=512; true")
	s.MustKubectl(t, "annotate", "--namespace", "production", "database", "tight", "database.einmal.dev/backup=full")
	awaitOutput(t, "the status says that the volume is full",
		s.fieldOf("database", "tight", `.status.conditions[?(@.type=="BackupHealthy")].message`), has("No space left on device"))
	s.change(t, "tight", `{"backup":{"claim":{"storage":"600Mi"}}}`)
	s.await(t, "pvc", "tight-backup", ".status.capacity.storage", "600Mi")
	s.requestBackup(t, "tight", "grown")
}
