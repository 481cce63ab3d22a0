package node

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal-operators/einmal/einmaltest"
	"github.com/einmal-operators/einmal/internal/testkit/realnode"
)

const (
	// shop is a Database with engine mariadb.
	shop = `{"apiVersion":"database.einmal.dev/v1","kind":"Database","metadata":{"namespace":"production","name":"%s"},
		"spec":{"engine":"mariadb","version":"10.11","storage":"%s","backupEnabled":false}}`
	// restoredShop is one that begins with a backup.
	restoredShop = `{"apiVersion":"database.einmal.dev/v1","kind":"Database","metadata":{"namespace":"production","name":"%s"},
		"spec":{"engine":"mariadb","version":"10.11","storage":"1Gi","backupEnabled":false,"bootstrap":{"fromBackup":%s}}}`
)

// A database with engine mariadb keeps its data and its password, whatever is deleted or killed. Its backups have all that apps have, and become other databases.
func TestNodeRunsMariaDB(t *testing.T) {
	for _, variable := range []string{"EINMAL_MARIADB", "EINMAL_S3"} {
		t.Setenv(variable, "1")
	}
	t.Setenv("EINMAL_POSTGRES_VERSIONS", "15")
	s := &started{realnode.Start(t, script, ready)}
	s.MustKubectl(t, "label", "namespace", "production", "pod-security.kubernetes.io/enforce=restricted")
	s.MustKubectl(t, "apply", "--filename", "testdata/shop-client.yaml")
	s.await(t, "pod", "shop-client", ".status.phase", "Running")
	contents, err := os.ReadFile("testdata/shop-contents.sql")
	if err != nil {
		t.Fatal(err)
	}
	s.inShop(t, "shop-db", string(contents))
	s.awaitShop(t)
	if got := s.inShop(t, "shop-db", "select convert_tz('2026-07-01 12:00', 'UTC', 'Europe/Berlin')"); got != "2026-07-01 14:00:00" {
		t.Errorf("noon in UTC is %s in Berlin", got)
	}

	t.Run("the Pod is deleted", func(t *testing.T) {
		s.remove(t, "pod", "shop-db-0")
		s.awaitShop(t)
	})
	t.Run("the server is killed", func(t *testing.T) {
		if killed := s.Kill(t, "mariadbd", "--defaults-file=/config/mariadb.cnf"); killed != 1 {
			t.Fatalf("killed %d servers, want 1", killed)
		}
		s.await(t, "pod", "shop-db-0", ".status.containerStatuses[0].restartCount", "1")
		s.awaitShop(t)
	})
	t.Run("a Pod that waits for the operator can be deleted", s.deletesAWaitingPod)
	t.Run("a parameter restarts the server", s.restartsShop)
	t.Run("a password that is lost or refused is said and healed", s.healsThePasswordOfTheShop)
	t.Run("a full volume is said and can grow", s.growsAShop)
	t.Run("a dropped table is in the copy", s.copiesTheShop)
	t.Run("a forged backup executes nothing", s.refusesAForgedShop)
	t.Run("a backup that is killed leaves nothing that looks whole", s.backsUpTheShopAfterAKill)
	t.Run("a backup of another engine is refused", func(t *testing.T) {
		s.requestBackup(t, "orders-db", "other")
		s.MustKubectl(t, "apply", "--filename", s.write(t, fmt.Sprintf(restoredShop, "other", `{"database":"orders-db"}`)))
		s.awaitMessage(t, "other", "is one of engine postgresql, not mariadb")
		s.MustKubectl(t, "delete", "database", "--namespace", "production", "other")
	})
	t.Run("passwords are in Secrets only", s.keepsPasswordsOfTheShop)
	t.Run("a backup in a bucket is restored when nothing else is left", s.restoresTheShopFromABucket)
}

// inShop executes statements as the administrator of a database, and returns what they print.
func (s *started) inShop(t *testing.T, database, statements string) string {
	t.Helper()
	return strings.TrimSpace(s.MustKubectl(t, "exec", "--namespace", "production", database+"-0", "--", "mariadb", "--batch", "--skip-column-names", "--execute", statements, "app"))
}

// awaitShop waits until an app reads how many customers there are, through the Service and with the password of the Secret.
func (s *started) awaitShop(t *testing.T) {
	t.Helper()
	const want = "50002"
	awaitOutput(t, "an app reads "+want+" customers", s.kubectl("exec", "shop-client", "--", "sh", "-c",
		`mariadb --user "$APP_USERNAME" --connect-timeout 3 --batch --skip-column-names --execute "select count(*) from customers" app`), is(want))
}

// awaitMessage waits until the message of Ready contains a text.
func (s *started) awaitMessage(t *testing.T, name, want string) {
	t.Helper()
	awaitOutput(t, "the message of Ready has "+want, s.fieldOf("database", name, `.status.conditions[?(@.type=="Ready")].message`), has(want))
}

// deletesAWaitingPod deletes a Pod that waits for its grant. It does not wait until the kubelet kills it, which is after three minutes.
func (s *started) deletesAWaitingPod(t *testing.T) {
	s.MustKubectl(t, "scale", "--namespace", "database-system", "deployment/database", "--replicas=0")
	s.MustKubectl(t, "wait", "--for=delete", "pod", "--namespace", "database-system", "--selector", "app.kubernetes.io/name=database", "--timeout=100s")
	s.remove(t, "pod", "shop-db-0")
	awaitOutput(t, "the Pod waits for the operator", s.kubectl("logs", "shop-db-0", "--container", "data"), has("waiting until the operator says"))
	waiting := s.uid(t, "pod", "shop-db-0")
	s.MustKubectl(t, "delete", "pod", "--namespace", "production", "shop-db-0", "--wait=false")
	s.awaitNew(t, "pod", "shop-db-0", waiting)
	s.MustKubectl(t, "scale", "--namespace", "database-system", "deployment/database", "--replicas=1")
	s.awaitShop(t)
}

// restartsShop changes a parameter. A server says what it has started with.
func (s *started) restartsShop(t *testing.T) {
	pod := s.uid(t, "pod", "shop-db-0")
	s.change(t, "shop-db", `{"parameters":{"max_connections":"55"}}`)
	s.awaitNew(t, "pod", "shop-db-0", pod)
	s.await(t, "database", "shop-db", `.status.conditions[?(@.type=="ParametersApplied")].reason`, "Applied")
	if got := s.inShop(t, "shop-db", "select @@max_connections"); got != "55" {
		t.Errorf("the server accepts %s connections, want 55", got)
	}
	s.awaitReason(t, "shop-db", "DatabaseReady")
}

// healsThePasswordOfTheShop deletes the Secrets of the password, and then changes it in the database. The status says the command that sets it again.
func (s *started) healsThePasswordOfTheShop(t *testing.T) {
	secret := s.MustKubectl(t, "get", "secret", "--namespace", "production", "shop-db-app.g1", "--output", "json")
	s.MustKubectl(t, "delete", "secret", "--namespace", "production", "shop-db-app.g1", "shop-db-app")
	s.awaitReason(t, "shop-db", "CredentialsMissing")
	s.remove(t, "pod", "shop-db-0")
	s.awaitShop(t)
	s.restore(t, secret)
	s.awaitReason(t, "shop-db", "DatabaseReady")

	s.inShop(t, "shop-db", "alter user app@'%' identified by 'another'")
	s.awaitReason(t, "shop-db", "PasswordRefused")
	message, err := s.field(t.Context(), "database", "shop-db", `.status.conditions[?(@.type=="Ready")].message`)
	if err != nil {
		t.Fatal(err)
	}
	_, command, found := strings.Cut(message, "kubectl ")
	if !found {
		t.Fatalf("the message has no command: %s", message)
	}
	password := s.MustKubectl(t, "exec", "--namespace", "production", "shop-client", "--", "printenv", "MYSQL_PWD")
	s.Shell(t, "kubectl "+strings.ReplaceAll(command, "PASSWORD", strings.TrimSpace(password)))
	s.awaitReason(t, "shop-db", "DatabaseReady")
	s.awaitShop(t)
}

// growsAShop writes into another database until its server ends.
func (s *started) growsAShop(t *testing.T) {
	s.MustKubectl(t, "apply", "--filename", s.write(t, fmt.Sprintf(shop, "tight", "300Mi")))
	s.awaitReason(t, "tight", "DatabaseReady")
	s.inShop(t, "tight", "create table fill (text longtext)")
	for range 20 { // More than the volume has.
		_, err := s.Kubectl(t.Context(), "exec", "--namespace", "production", "tight-0", "--", "mariadb", "--execute",
			"insert into fill select repeat(md5(rand()), 3000) from seq_1_to_200", "app")
		if err != nil {
			break
		}
	}
	s.awaitReason(t, "tight", "VolumeFull")
	s.change(t, "tight", `{"storage":"600Mi"}`)
	s.awaitReason(t, "tight", "DatabaseReady")
	if got := s.inShop(t, "tight", "check table fill"); !strings.HasSuffix(got, "OK") {
		t.Errorf("the table is damaged: %s", got)
	}
	s.MustKubectl(t, "delete", "database", "--namespace", "production", "tight")
}

// sums returns the checksums of all tables, and what else a database has.
func (s *started) sums(t *testing.T, database string) []string {
	t.Helper()
	return strings.Split(s.inShop(t, database, `checksum table customers, orders, prices, notes extended; select count(*) from prices for system_time all;
		select count(*), sum(twice) from big; select twice(21); select nextval(numbers) >= 100;
		select trigger_name, action_statement from information_schema.triggers where trigger_schema = 'app';
		select event_name, event_definition from information_schema.events; show create table customers`), "\n")
}

// copiesTheShop makes a backup, drops a table, and restores the backup into another database. What other users have defined belongs to the owner there.
func (s *started) copiesTheShop(t *testing.T) {
	s.change(t, "shop-db", `{"backup":{"claim":{"storage":"1Gi"}}}`)
	before := s.sums(t, "shop-db")
	s.requestBackup(t, "shop-db", "first")
	s.inShop(t, "shop-db", "create table other like orders; insert into other (id, customer, total, note) select id, customer, total, note from orders; drop table orders")
	s.MustKubectl(t, "apply", "--filename", s.write(t, fmt.Sprintf(restoredShop, "copy", `{"database":"shop-db"}`)))
	s.awaitReason(t, "copy", "DatabaseReady")
	if diff := cmp.Diff(before, s.sums(t, "copy")); diff != "" {
		t.Errorf("the database (-original +copy):\n%s", diff)
	}
	definers := s.inShop(t, "copy", `select distinct definer from (select definer from information_schema.views where table_schema = 'app'
		union all select definer from information_schema.triggers where trigger_schema = 'app' union all select definer from information_schema.events
		union all select definer from information_schema.routines where routine_schema = 'app') as defined`)
	if definers != "app@%" {
		t.Errorf("the definers are %q, want app@%%", definers)
	}
	s.inShop(t, "shop-db", "rename table other to orders")
	s.MustKubectl(t, "delete", "database", "--namespace", "production", "copy")
}

// backsUpTheShopAfterAKill kills a dump that waits for a table. The next attempt of the Job succeeds.
func (s *started) backsUpTheShopAfterAKill(t *testing.T) {
	locked := make(chan error, 1)
	go func() {
		_, err := s.Kubectl(t.Context(), "exec", "--namespace", "production", "shop-db-0", "--", "mariadb", "--execute", "lock tables orders write; select sleep(30)", "app")
		locked <- err
	}()
	einmaltest.Eventually(t, "the table is locked", func(context.Context) error {
		if s.inShop(t, "shop-db", "select count(*) from information_schema.processlist where info = 'select sleep(30)'") != "1" {
			return errors.New("it is not")
		}
		return nil
	})
	s.MustKubectl(t, "annotate", "--namespace", "production", "--overwrite", "database", "shop-db", "database.einmal.dev/backup=killed")
	einmaltest.Eventually(t, "the dump is killed", func(context.Context) error {
		if s.Kill(t, "mariadb-dump", "--no-defaults") == 0 {
			return errors.New("it does not run")
		}
		return nil
	})
	s.await(t, "database", "shop-db", ".status.backup.lastSuccess.job", "shop-db-backup-killed")
	if err := <-locked; err != nil {
		t.Error(err)
	}
	failed := s.MustKubectl(t, "get", "pods", "--namespace", "production", "--selector", "job-name=shop-db-backup-killed", "--output",
		"jsonpath={.items[*].status.containerStatuses[*].state.terminated.message}")
	if !strings.Contains(failed, "BackupFailed: ") {
		t.Errorf("the killed backup says %q", failed)
	}
}

// keepsPasswordsOfTheShop looks for the passwords in everything that people and other programs read.
func (s *started) keepsPasswordsOfTheShop(t *testing.T) {
	logs := s.MustKubectl(t, "logs", "--namespace", "production", "shop-db-0", "--all-containers")
	for _, secret := range []string{"app", "monitor", "backup"} {
		encoded := s.MustKubectl(t, "get", "secret", "--namespace", "production", "shop-db-"+secret, "--output", "jsonpath={.data.password}")
		password, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil || len(password) == 0 {
			t.Fatalf("the password is %q: %v", encoded, err)
		}
		s.isSaidNowhere(t, "the password of "+secret, string(password), encoded)
		if strings.Contains(logs, string(password)) {
			t.Errorf("the log of the server: the password of %s is there", secret)
		}
	}
}

// restoresTheShopFromABucket deletes the database with its volumes after a backup.
func (s *started) restoresTheShopFromABucket(t *testing.T) {
	s.change(t, "shop-db", `{"deletionPolicy":"Delete","backup":{"s3":{`+inBucket+`}}}`)
	s.requestBackup(t, "shop-db", "last")
	before := s.sums(t, "shop-db")
	s.MustKubectl(t, "delete", "database", "--namespace", "production", "shop-db")
	s.MustKubectl(t, "apply", "--filename", s.write(t, fmt.Sprintf(restoredShop, "rebuilt", `{"database":"shop-db","namespace":"production","s3":{`+inBucket+`}}`)))
	s.awaitReason(t, "rebuilt", "DatabaseReady")
	if diff := cmp.Diff(before, s.sums(t, "rebuilt")); diff != "" {
		t.Errorf("the database (-original +rebuilt):\n%s", diff)
	}
}
