package node

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal-operators/einmal/internal/testkit/realnode"
)

const (
	script = "./run.sh"
	ready  = "The database orders-db is ready."
)

// started is a run of run.sh.
type started struct{ *realnode.Node }

// sql runs a statement as the app does: with the Secret of the database, through its Service.
func (s *started) sql(ctx context.Context, statement string) (string, error) {
	out, err := s.Kubectl(ctx, "exec", "--namespace", "production", "client", "--", "psql", "-qAtc", statement)
	return strings.TrimSpace(out), err
}

// awaitSQL waits until a statement has a result.
func (s *started) awaitSQL(t *testing.T, statement, want string) {
	t.Helper()
	awaitOutput(t, statement+" returns "+want, func(ctx context.Context) (string, error) { return s.sql(ctx, statement) }, is(want))
}

// field returns a field of an object.
func (s *started) field(ctx context.Context, kind, name, path string) (string, error) {
	return s.fieldOf(kind, name, path)(ctx)
}

// fieldOf returns a command that prints a field of an object.
func (s *started) fieldOf(kind, name, path string) command {
	return s.kubectl("get", kind, name, "--output", "jsonpath={"+path+"}")
}

// await waits until a field of an object is as wanted.
func (s *started) await(t *testing.T, kind, name, path, want string) {
	t.Helper()
	awaitOutput(t, fmt.Sprintf("%s %s has %s %s", kind, name, path, want), s.fieldOf(kind, name, path), is(want))
}

// awaitReason waits until the condition Ready of a Database has a reason.
func (s *started) awaitReason(t *testing.T, name, want string) {
	t.Helper()
	s.await(t, "database", name, `.status.conditions[?(@.type=="Ready")].reason`, want)
}

// awaitNew waits until an object exists with another uid than before.
func (s *started) awaitNew(t *testing.T, kind, name, before string) {
	t.Helper()
	awaitOutput(t, kind+" "+name+" is created again", s.fieldOf(kind, name, ".metadata.uid"), func(uid string) bool { return uid != before })
}

func (s *started) uid(t *testing.T, kind, name string) string {
	t.Helper()
	uid, err := s.field(t.Context(), kind, name, ".metadata.uid")
	if err != nil {
		t.Fatal(err)
	}
	return uid
}

// remove deletes an object, and waits until there is another one.
func (s *started) remove(t *testing.T, kind, name string) {
	t.Helper()
	before := s.uid(t, kind, name)
	s.MustKubectl(t, "delete", kind, "--namespace", "production", name)
	s.awaitNew(t, kind, name, before)
}

// The object of the article becomes a PostgreSQL that an app uses. It keeps its data, whatever is deleted or killed.
func TestNodeRunsDatabases(t *testing.T) {
	data := t.TempDir()
	s := &started{realnode.StartIn(t, data, script, ready)}
	s.MustKubectl(t, "label", "namespace", "production", "pod-security.kubernetes.io/enforce=restricted")
	s.connect(t, "16")
	const query, want = "select n, by from kept", "42|app"

	t.Run("the Pod is deleted", func(t *testing.T) {
		s.remove(t, "pod", "orders-db-0")
		s.awaitSQL(t, query, want)
	})
	t.Run("the server is killed", func(t *testing.T) {
		if killed := s.Kill(t, "postgres", "-D", "/data/pgdata"); killed != 2 {
			t.Fatalf("killed %d servers, want 2", killed)
		}
		s.await(t, "pod", "orders-db-0", ".status.containerStatuses[0].restartCount", "1")
		s.awaitSQL(t, query, want)
		s.await(t, "pod", "orders-db-0", ".status.containerStatuses[0].restartCount", "1") // The first start was the last.
	})
	t.Run("the StatefulSet is deleted", func(t *testing.T) {
		s.remove(t, "statefulset", "orders-db")
		// The garbage collector deletes the Pod of the old one.
		s.await(t, "pod", "orders-db-0", ".metadata.ownerReferences[0].uid", s.uid(t, "statefulset", "orders-db"))
		s.await(t, "database", "orders-db", ".status.primary.uid", s.uid(t, "pod", "orders-db-0"))
		s.awaitReason(t, "orders-db", "DatabaseReady")
		s.awaitSQL(t, query, want)
	})
	t.Run("each object is deleted or edited", s.isRepaired)
	t.Run("the operator is killed, and writes nothing when it is back", func(t *testing.T) {
		s.awaitServers(t, "Ready Streaming") // So nothing changes any more.
		get := []string{"get", "database", "--namespace", "production", "orders-db", "--output", "yaml", "--show-managed-fields"}
		before := s.MustKubectl(t, get...)
		if killed := s.Kill(t, "/usr/local/bin/database", "run"); killed != 1 {
			t.Fatalf("killed %d operators, want 1", killed)
		}
		s.remove(t, "service", "orders-db-rw") // The operator is back when this Service is.
		if diff := cmp.Diff(before, s.MustKubectl(t, get...)); diff != "" {
			t.Errorf("the Database has changed (-before +after):\n%s", diff)
		}
		s.awaitSQL(t, query, want)
	})
	t.Run("the Database is replaced and applied as it is", s.isWrittenAgain)
	t.Run("the password is lost and restored", s.losesItsPassword)
	t.Run("a second database has no image", func(t *testing.T) {
		s.MustKubectl(t, "apply", "--filename", "testdata/no-image.yaml")
		s.awaitReason(t, "no-image", "ImageNotAvailable")
		s.MustKubectl(t, "delete", "--filename", "testdata/no-image.yaml")
	})
	t.Run("the Database is deleted and restored", func(t *testing.T) {
		object := s.MustKubectl(t, "get", "database", "--namespace", "production", "orders-db", "--output", "json")
		s.MustKubectl(t, "delete", "database", "--namespace", "production", "orders-db")
		s.restore(t, object) // With its old uid, status and annotations, while the server ends.
		s.awaitReason(t, "orders-db", "DatabaseReady")
		s.awaitSQL(t, query, want)
	})
	t.Run("objects of others stay as they are", s.leavesOthers)
	t.Run("the volume grows", s.grows)
	t.Run("parameters are applied", s.appliesParameters)
	t.Run("a full volume and a refused password are said, and healed", s.healsWhatPeopleMend)
	t.Run("passwords are in Secrets only", s.keepsPasswords)
	t.Run("devcluster is started again", func(t *testing.T) {
		s.Stop(t)
		s = &started{realnode.StartIn(t, data, script, ready)}
		s.awaitSQL(t, query, want)
	})
}

// connect starts a client with the image of a major version of PostgreSQL, and makes the table whose row must stay.
func (s *started) connect(t *testing.T, version string) {
	t.Helper()
	client, err := os.ReadFile("testdata/client.yaml")
	if err != nil {
		t.Fatal(err)
	}
	s.MustKubectl(t, "apply", "--filename", s.write(t, strings.ReplaceAll(string(client), "postgres:16", "postgres:"+version)))
	s.awaitSQL(t, "create table if not exists kept as select 42 as n, current_user as by", "")
}

// isRepaired deletes or edits what belongs to the Database. All of it is back, and the server goes on.
func (s *started) isRepaired(t *testing.T) {
	pod := s.uid(t, "pod", "orders-db-0")
	for _, object := range [][2]string{
		{"configmap", "orders-db-config"},
		{"service", "orders-db-rw"},
		{"service", "orders-db-ro"},
		{"service", "orders-db-pods"},
		{"poddisruptionbudget", "orders-db"},
		{"networkpolicy", "orders-db"},
		{"secret", "orders-db-app"},
		{"secret", "orders-db-monitor"},
		{"secret", "orders-db-replication"},
		{"secret", "orders-db-backup"},
		{"cronjob", "orders-db-backup"},
	} {
		s.remove(t, object[0], object[1])
	}
	for _, edit := range []struct{ kind, name, patch, path, want string }{
		{"configmap", "orders-db-config", `{"data":{"pg_hba.conf":"host all all all trust"}}`, `.data.pg_hba\.conf`, s.config(t)},
		{"service", "orders-db-rw", `{"spec":{"selector":{"database.einmal.dev/name":"other"}}}`, `.spec.selector.database\.einmal\.dev/name`, "orders-db"},
		{"networkpolicy", "orders-db", `{"spec":{"ingress":[{}]}}`, ".spec.ingress[0].ports[0].port", "5432"},
		{"statefulset", "orders-db", `{"spec":{"replicas":1}}`, ".spec.replicas", "2"},
		{"secret", "orders-db-app", `{"stringData":{"username":"other"}}`, ".data.username", "YXBw"},
		{"pod", "orders-db-0", `{"metadata":{"labels":{"database.einmal.dev/role":"standby"}}}`, `.metadata.labels.database\.einmal\.dev/role`, "primary"},
	} {
		s.MustKubectl(t, "patch", edit.kind, "--namespace", "production", edit.name, "--type", "merge", "--patch", edit.patch)
		s.await(t, edit.kind, edit.name, edit.path, edit.want)
	}
	s.awaitSQL(t, "select n from kept", "42")
	if now := s.uid(t, "pod", "orders-db-0"); now != pod {
		t.Error("the Pod was replaced")
	}
}

// config returns who may log in, as the operator has configured it.
func (s *started) config(t *testing.T) string {
	t.Helper()
	text, err := s.field(t.Context(), "configmap", "orders-db-config", `.data.pg_hba\.conf`)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// isWrittenAgain writes the Database again, as backups and pipelines do. The operator changes nothing.
func (s *started) isWrittenAgain(t *testing.T) {
	look := func() string {
		return s.uid(t, "pod", "orders-db-0") + s.uid(t, "secret", "orders-db-app") +
			s.MustKubectl(t, "get", "database", "--namespace", "production", "orders-db", "--output", "jsonpath={.metadata.generation} {.status}")
	}
	object, before := s.MustKubectl(t, "get", "database", "--namespace", "production", "orders-db", "--output", "json"), look()
	s.MustKubectl(t, "replace", "--filename", s.write(t, object))
	s.MustKubectl(t, "apply", "--filename", "../config/samples/orders-db.yaml")
	s.remove(t, "service", "orders-db-rw") // When this Service is back, the operator has seen the Database.
	if diff := cmp.Diff(before, look()); diff != "" {
		t.Errorf("uids and status (-before +after):\n%s", diff)
	}
}

// leavesOthers creates a Database whose names are taken. It gets its server when they are not any more.
func (s *started) leavesOthers(t *testing.T) {
	s.MustKubectl(t, "apply", "--filename", "testdata/taken.yaml")
	s.await(t, "pod", "taken-0", ".status.phase", "Running")
	look := func() string {
		return s.uid(t, "pod", "taken-0") + s.uid(t, "statefulset", "taken") +
			s.MustKubectl(t, "get", "statefulset,pod,persistentvolumeclaim", "--namespace", "production", "--selector", "app=taken", "--output",
				"jsonpath={.items[*]['metadata.generation','metadata.labels','metadata.annotations','spec.resources']}")
	}
	before := look()
	s.MustKubectl(t, "apply", "--filename", "testdata/taken-database.yaml")
	s.awaitReason(t, "taken", "ObjectRefused")
	if diff := cmp.Diff(before, look()); diff != "" {
		t.Errorf("objects of others (-before +after):\n%s", diff)
	}
	s.MustKubectl(t, "delete", "statefulset,persistentvolumeclaim", "--namespace", "production", "--selector", "app=taken")
	s.awaitReason(t, "taken", "DatabaseReady")
	s.MustKubectl(t, "delete", "--filename", "testdata/taken-database.yaml")
}

// losesItsPassword deletes both Secrets: the operator generates no other password. The apps go on, and a Pod that starts needs none.
func (s *started) losesItsPassword(t *testing.T) {
	secret := s.MustKubectl(t, "get", "secret", "--namespace", "production", "orders-db-app.g1", "--output", "json")
	s.MustKubectl(t, "delete", "secret", "--namespace", "production", "orders-db-app.g1", "orders-db-app")
	s.awaitReason(t, "orders-db", "CredentialsMissing")
	s.remove(t, "pod", "orders-db-0")
	s.awaitSQL(t, "select n from kept", "42")
	s.await(t, "database", "orders-db", `.status.conditions[?(@.type=="Available")].status`, "True")
	s.awaitReason(t, "orders-db", "CredentialsMissing")
	s.restore(t, secret)
	s.awaitReason(t, "orders-db", "DatabaseReady")
}

// grows raises the size of a volume: the Pod stays, and the StatefulSet is created again.
func (s *started) grows(t *testing.T) {
	pod := s.uid(t, "pod", "orders-db-0")
	s.MustKubectl(t, "patch", "database", "--namespace", "production", "orders-db", "--type", "merge", "--patch", `{"spec":{"storage":"120Gi"}}`)
	s.await(t, "statefulset", "orders-db", ".spec.volumeClaimTemplates[0].spec.resources.requests.storage", "120Gi")
	s.await(t, "database", "orders-db", ".status.storage.actual", "120Gi")
	s.await(t, "pod", "orders-db-0", ".metadata.ownerReferences[0].uid", s.uid(t, "statefulset", "orders-db"))
	s.awaitReason(t, "orders-db", "DatabaseReady")
	if now := s.uid(t, "pod", "orders-db-0"); now != pod {
		t.Error("the Pod was replaced")
	}
	// The Pods have what the new StatefulSet says: otherwise it would be RestartPending.
	s.await(t, "database", "orders-db", `.status.conditions[?(@.type=="Progressing")].reason`, "Complete")
}

// appliesParameters changes parameters: the server reads one, and is restarted for the other.
func (s *started) appliesParameters(t *testing.T) {
	pod := s.uid(t, "pod", "orders-db-0")
	set := func(parameters string) {
		s.MustKubectl(t, "patch", "database", "--namespace", "production", "orders-db", "--type", "merge", "--patch", `{"spec":{"parameters":`+parameters+`}}`)
	}
	reason := func(want string) {
		s.await(t, "database", "orders-db", `.status.conditions[?(@.type=="ParametersApplied")].reason`, want)
	}
	set(`{"work_mem":"64MB"}`)
	s.awaitSQL(t, "show work_mem", "64MB")
	reason("Applied")
	set(`{"work_mem":"64 Mi"}`)
	reason("Invalid")
	s.awaitSQL(t, "show work_mem", "64MB")
	if now := s.uid(t, "pod", "orders-db-0"); now != pod {
		t.Error("the Pod was replaced")
	}
	set(`{"work_mem":null,"max_connections":"55"}`)
	s.awaitSQL(t, "show max_connections", "55")
	reason("Applied")
	s.awaitReason(t, "orders-db", "DatabaseReady")
}

// healsWhatPeopleMend fills the volume of a second database, and lets it grow. Meanwhile the first one has a password that its Secret does not have.
func (s *started) healsWhatPeopleMend(t *testing.T) {
	s.MustKubectl(t, "apply", "--filename", "testdata/small.yaml")
	password := s.MustKubectl(t, "exec", "--namespace", "production", "client", "--", "printenv", "PGPASSWORD")
	alter := func(to string) {
		s.MustKubectl(t, "exec", "--namespace", "production", "orders-db-0", "--", "psql", "-qc", "alter role app password '"+to+"'")
	}
	alter("another")
	s.awaitReason(t, "small", "DatabaseReady")
	s.fill(t)
	s.awaitReason(t, "small", "VolumeFull")
	s.MustKubectl(t, "patch", "database", "--namespace", "production", "small", "--type", "merge", "--patch", `{"spec":{"storage":"600Mi"}}`)
	s.awaitReason(t, "small", "DatabaseReady")
	s.awaitReason(t, "orders-db", "PasswordRefused")
	alter(strings.TrimSpace(password))
	s.awaitReason(t, "orders-db", "DatabaseReady")
}

// fill writes into the second database until its server ends.
func (s *started) fill(t *testing.T) {
	t.Helper()
	psql := func(statement string) error {
		_, err := s.Kubectl(t.Context(), "exec", "--namespace", "production", "small-0", "--", "psql", "-qc", statement)
		return err
	}
	if err := psql("create table fill (t text); alter table fill alter t set storage external"); err != nil {
		t.Fatal(err)
	}
	for range 100 { // More than the volume has.
		if psql("insert into fill select repeat(md5(random()::text), 500) from generate_series(1, 500)") != nil {
			break
		}
	}
	for range 4 {
		if psql("select pg_switch_wal(); create table another (n int); drop table another") != nil {
			return
		}
	}
	t.Error("the server of a full volume goes on")
}

// restore creates objects again.
func (s *started) restore(t *testing.T, objects string) {
	t.Helper()
	s.MustKubectl(t, "create", "--filename", s.write(t, objects))
}

// write writes objects into a file, for kubectl.
func (s *started) write(t *testing.T, objects string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "objects.json")
	if err := os.WriteFile(file, []byte(objects), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// keepsPasswords looks for the passwords in everything that people and other programs read.
func (s *started) keepsPasswords(t *testing.T) {
	for _, secret := range []string{"app", "monitor", "replication", "backup"} {
		encoded := s.MustKubectl(t, "get", "secret", "--namespace", "production", "orders-db-"+secret, "--output", "jsonpath={.data.password}")
		password, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil || len(password) == 0 {
			t.Fatalf("the password is %q: %v", encoded, err)
		}
		s.isSaidNowhere(t, "the password of "+secret, string(password), encoded)
	}
}

// isSaidNowhere expects that no object besides Secrets and no log has one of some words.
func (s *started) isSaidNowhere(t *testing.T, title string, words ...string) {
	t.Helper()
	places := map[string]string{
		"objects":                 s.MustKubectl(t, "get", "databases,pods,statefulsets,jobs,cronjobs,configmaps,services,events", "--all-namespaces", "--output", "json"),
		"the log of the operator": s.MustKubectl(t, "logs", "--namespace", "database-system", "deployment/database"),
		"the log of the primary":  s.MustKubectl(t, "logs", "--namespace", "production", "orders-db-0", "--all-containers"),
		"the log of the standby":  s.MustKubectl(t, "logs", "--namespace", "production", "orders-db-1", "--all-containers"),
		"the logs of backups":     s.MustKubectl(t, "logs", "--namespace", "production", "--selector", "database.einmal.dev/backup-of", "--all-containers", "--tail=-1"),
	}
	for place, text := range places {
		for _, word := range words {
			if strings.Contains(text, word) {
				t.Errorf("%s: %s is there", place, title)
			}
		}
	}
}
