package node

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// namesWhatIsMissing restores an extension that only a superuser can create: without the operator's flag, the status and a file in the volume say that it is
// missing, and with it, it is restored.
func (s *started) namesWhatIsMissing(t *testing.T) {
	s.inOriginal(t, "create extension bloom")
	s.requestBackup(t, "orders-db", "extension")
	s.MustKubectl(t, "apply", "--filename", s.write(t, fmt.Sprintf(restored, "lacking", "16", `{"database":"orders-db"}`)))
	s.awaitReason(t, "lacking", "DatabaseReady")
	message, err := s.field(t.Context(), "database", "lacking", `.status.conditions[?(@.type=="RestoreComplete")].message`)
	if err != nil || !strings.Contains(message, " is restored with all rows of the app, but without: EXTENSION - bloom; for the errors: kubectl exec ") {
		t.Errorf("the status says %q, %v", message, err)
	}
	_, command, _ := strings.Cut(message, ": kubectl ")
	if log := s.MustKubectl(t, strings.Fields(command)...); !strings.Contains(log, `permission denied to create extension "bloom"`) {
		t.Errorf("the log of the restore has\n%s", log)
	}
	s.MustKubectl(t, "patch", "deployment", "--namespace", "database-system", "database", "--type=json",
		"--patch", `[{"op":"add","path":"/spec/template/spec/containers/0/args/-","value":"--restore-extensions=postgis,bloom"}]`)
	s.MustKubectl(t, "rollout", "status", "--namespace", "database-system", "deployment/database", "--timeout=300s")
	s.MustKubectl(t, "apply", "--filename", s.write(t, fmt.Sprintf(restored, "whole", "16", `{"database":"orders-db"}`)))
	s.awaitReason(t, "whole", "DatabaseReady")
	s.await(t, "database", "whole", `.status.conditions[?(@.type=="RestoreComplete")].reason`, "Complete")
	s.inPod(t, "whole", "select extowner::regrole from pg_extension where extname = 'bloom'", "postgres")
}

// isNotPruned applies a Database twice with an ApplySet, as GitOps tools do, and lets kubectl delete what is not in it.
func (s *started) isNotPruned(t *testing.T) {
	database := s.write(t, s.MustKubectl(t, "get", "database", "--namespace", "production", "orders-db", "--output",
		`go-template={"apiVersion":"{{.apiVersion}}","kind":"{{.kind}}","metadata":{"name":"{{.metadata.name}}"},"spec":{"engine":"{{.spec.engine}}","version":"{{.spec.version}}","storage":"{{.spec.storage}}","replicas":{{.spec.replicas}}}}`))
	all := func() string {
		return s.MustKubectl(t, "get", "persistentvolumeclaims,secrets,statefulsets,services,configmaps,cronjobs,jobs,networkpolicies,poddisruptionbudgets,pods",
			"--namespace", "production", "--output", `jsonpath={range .items[*]}{.kind} {.metadata.name} {.metadata.uid}{"\n"}{end}`)
	}
	set := fmt.Sprintf("export KUBECTL_APPLYSET=true\nkubectl apply --prune --applyset=orders --namespace production --filename %s\n", database)
	s.Shell(t, set)
	before := all()
	out := s.Shell(t, set+set)
	if strings.Contains(out, "pruned") {
		t.Errorf("kubectl has deleted objects:\n%s", out)
	}
	if diff := cmp.Diff(before, all()); diff != "" {
		t.Errorf("the objects of the Database (-before +after):\n%s", diff)
	}
	for _, label := range []string{"app.kubernetes.io/instance", "applyset.kubernetes.io/part-of"} {
		if claims := s.MustKubectl(t, "get", "persistentvolumeclaims,secrets", "--namespace", "production", "--selector", label, "--output", "name"); claims != "" {
			t.Errorf("objects without an owner have the label %s: %s", label, claims)
		}
	}
}

// refusesAForgedShop restores a backup of MariaDB with commands of the client, as someone with access to the volume can write them.
func (s *started) refusesAForgedShop(t *testing.T) {
	pod, err := os.ReadFile("testdata/backups.yaml")
	if err != nil {
		t.Fatal(err)
	}
	shown := strings.NewReplacer("orders-db-backup", "shop-db-backup", "name: backups\n  namespace", "name: shop-backups\n  namespace", "postgres:16", "mariadb:10.11").Replace(string(pod))
	s.MustKubectl(t, "apply", "--filename", s.write(t, shown))
	s.await(t, "pod", "shop-backups", ".status.phase", "Running")
	inBackups := func(command string, args ...string) {
		s.MustKubectl(t, append([]string{"exec", "--namespace", "production", "shop-backups", "--", "sh", "-ceu", command}, args...)...)
	}
	inBackups(`for one in 2*Z; do :; done; cp -r "$one" original`)
	for i, statement := range []string{`\! touch /data/forged`, `load data local infile '/secret/monitor' into table stolen`, `tee /data/forged`} {
		forged := fmt.Sprintf("20990101T00000%dZ", i)
		inBackups(`cp -r original part; cd part; { echo 'create table stolen (what text);'; printf '%s\n;\n' "$0"; gzip -dc ../original/dump; } | gzip >dump
			sha256sum dump about roles >sha256; cd ..; mv part "$1"`, statement, forged)
		if i == 0 {
			s.MustKubectl(t, "apply", "--filename", s.write(t, fmt.Sprintf(restoredShop, "forged", `{"database":"shop-db"}`)))
		}
		s.awaitMessage(t, "forged", "the backup "+forged+" could not be restored")
	}
	inBackups("rm -r 2099* original")
	s.awaitReason(t, "forged", "DatabaseReady")
	if files := s.MustKubectl(t, "exec", "--namespace", "production", "forged-0", "--", "ls", "/data"); strings.Contains(files, "forged") {
		t.Errorf("the client of a restore has executed a command: %s", files)
	}
	s.MustKubectl(t, "delete", "database", "--namespace", "production", "forged")
	s.MustKubectl(t, "delete", "pod", "--namespace", "production", "shop-backups")
}
