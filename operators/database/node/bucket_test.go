package node

import (
	"fmt"
	"strings"
	"testing"

	"github.com/einmal-operators/einmal/internal/testkit/realnode"
)

// inBucket is the bucket of testdata/s3.yaml.
const inBucket = `"endpoint":"http://s3:9000","bucket":"backups","prefix":"clusters/blue","secretName":"s3"`

// Backups are copied to a bucket, and a new database begins with one of them when the Database and its volumes are gone. What is wrong with the bucket is said.
func TestNodeKeepsBackupsInABucket(t *testing.T) {
	t.Setenv("EINMAL_POSTGRES_VERSIONS", "15")
	t.Setenv("EINMAL_S3", "1")
	s := &started{realnode.Start(t, script, ready)}
	s.MustKubectl(t, "label", "namespace", "production", "pod-security.kubernetes.io/enforce=restricted")
	s.connect(t, "15")
	s.inOriginal(t, "create table many as select n, repeat(md5(n::text), 10) as text from generate_series(1, 200000) n")
	sum := s.inOriginal(t, "select sum(hashtext(many::text)) from many")
	s.change(t, "orders-db", `{"backup":{"s3":{`+inBucket+`}}}`)

	t.Run("a backup is in the bucket", func(t *testing.T) {
		s.requestBackup(t, "orders-db", "first")
		location := s.location(t)
		if want := "s3://backups/clusters/blue/production/orders-db/2"; !strings.HasPrefix(location, want) {
			t.Errorf("the backup is at %s, want it at %s…", location, want)
		}
		s.awaitBackups(t, "BackupRecent")
	})
	t.Run("a wrong access key is said", func(t *testing.T) {
		s.setAccessKey(t, "wrong")
		s.failsToBackUp(t, "second", "The access key does not exist")
		s.MustKubectl(t, "apply", "--filename", s.write(t, fmt.Sprintf(restored, "bad", "15", `{"database":"orders-db","s3":{`+inBucket+`}}`)))
		s.awaitReason(t, "bad", "RestoreFailed")
		s.setAccessKey(t, "backupkey")
		s.awaitReason(t, "bad", "DatabaseReady")
		s.inPod(t, "bad", "select sum(hashtext(many::text)) from many", sum)
	})
	t.Run("a full bucket is said", func(t *testing.T) {
		s.change(t, "orders-db", `{"backup":{"s3":{"bucket":"full"}}}`)
		s.failsToBackUp(t, "third", "Storage backend has reached its minimum free drive threshold")
		s.change(t, "orders-db", `{"backup":{"s3":{"bucket":"backups"}}}`)
		s.requestBackup(t, "orders-db", "fourth")
		s.awaitBackups(t, "BackupRecent")
	})
	t.Run("keys and passwords are in Secrets only", func(t *testing.T) {
		s.keepsPasswords(t)
		s.isSaidNowhere(t, "the secret key", "backupsecret")
	})
	t.Run("a backup is restored when nothing else is left", func(t *testing.T) {
		location := s.location(t)
		s.MustKubectl(t, "patch", "database", "--namespace", "production", "orders-db", "--type", "merge", "--patch", `{"spec":{"deletionPolicy":"Delete"}}`)
		s.MustKubectl(t, "delete", "database", "--namespace", "production", "orders-db")
		s.MustKubectl(t, "apply", "--filename", s.write(t, fmt.Sprintf(restored, "copy", "15",
			`{"database":"orders-db","namespace":"production","s3":{`+inBucket+`}}`)))
		s.awaitReason(t, "copy", "DatabaseReady")
		s.await(t, "database", "copy", ".status.restoredFrom", location)
		s.inPod(t, "copy", "select sum(hashtext(many::text)) from many", sum)
		if left := s.MustKubectl(t, "exec", "--namespace", "production", "copy-0", "--", "ls", "/data"); strings.Contains(left, "fetched") {
			t.Errorf("the volume has the fetched backup: %s", left)
		}
	})
}

// location returns where the last backup of orders-db is.
func (s *started) location(t *testing.T) string {
	t.Helper()
	found, err := s.field(t.Context(), "database", "orders-db", ".status.backup.lastSuccess.location")
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// setAccessKey changes the Secret of the bucket.
func (s *started) setAccessKey(t *testing.T, key string) {
	t.Helper()
	s.MustKubectl(t, "patch", "secret", "--namespace", "production", "s3", "--type", "merge", "--patch", `{"stringData":{"AWS_ACCESS_KEY_ID":"`+key+`"}}`)
}

// failsToBackUp asks for a backup that fails, and waits until the status says why.
func (s *started) failsToBackUp(t *testing.T, request, want string) {
	t.Helper()
	s.MustKubectl(t, "annotate", "--namespace", "production", "--overwrite", "database", "orders-db", "database.einmal.dev/backup="+request)
	awaitOutput(t, "the last failure has "+want, s.fieldOf("database", "orders-db", ".status.backup.lastFailure"), has(want, request))
	s.awaitBackups(t, "BackupFailed")
}
