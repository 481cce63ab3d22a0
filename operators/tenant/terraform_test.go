package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal/credential"
	v1 "github.com/einmal-operators/einmal/operators/tenant/api/v1"
	"github.com/einmal-operators/einmal/operators/tenant/names"
	"github.com/einmal-operators/einmal/operators/tenant/witness"
)

// TestTerraformAppliesAndReplacesATenantAndNoLoginFails runs terraform as a CI does, on each deploy: it applies a Tenant twice, replaces it,
// and applies it again. The credentials are those of the first time, and a client that has them can log in all the time
// .
//
// Where terraform or its provider cannot be had, it says so, and shows nothing: terraform is no part of what a machine needs.
func TestTerraformAppliesAndReplacesATenantAndNoLoginFails(t *testing.T) {
	t.Parallel()
	program, provider := terraform(t)
	if program == "" {
		return
	}
	s := startStage(t)
	s.start(t)
	tf := s.configure(t, program, provider)

	tf.apply(t, "1 added, 0 changed, 0 destroyed")
	made := s.awaitPhase(t, "acme", v1.Ready)
	first := s.versions(t)
	of := names.Tenant{Name: "acme"}
	db, cache := s.stored(t, of.App("web").DatabaseSecret()), s.stored(t, of.App("web").CacheSecret())
	watching := witness.Start(t.Context(),
		witness.Postgres{Address: s.postgres.Address(), Database: of.Database(), Username: db.Username, Password: db.Password},
		witness.Redis{Address: s.redis.Address(), Username: cache.Username, Password: cache.Password, Key: "acme:witness"})

	tf.apply(t, "0 added, 0 changed, 0 destroyed")
	if same := s.awaitPhase(t, "acme", v1.Ready); same.UID != made.UID || same.Generation != made.Generation {
		t.Errorf("the second apply made it %s, generation %d", same.UID, same.Generation)
	}
	tf.apply(t, "1 added, 0 changed, 1 destroyed", "-replace=kubectl_manifest.tenant")
	if again := s.awaitPhase(t, "acme", v1.Ready); again.UID == made.UID {
		t.Error("it was not replaced")
	}
	tf.apply(t, "0 added, 0 changed, 0 destroyed")

	report := watching.Stop()
	t.Logf("logins with the first credentials:\n%s", report)
	if report.Failures() > 0 || report.Logins() == 0 {
		t.Error("a client with the first credentials was rejected")
	}
	if now := s.versions(t); !maps.Equal(first, now) || len(first) != 4 {
		t.Errorf("the Secrets were %v, and are %v", first, now)
	}
}

// terraform finds the program and its provider; "" if there is none.
func terraform(t *testing.T) (program, provider string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), "../../tools/terraform.sh")
	output, err := command.Output()
	var failed *exec.ExitError
	if errors.As(err, &failed) && failed.ExitCode() == 3 {
		t.Logf("%s", failed.Stderr)
		return "", ""
	}
	if err != nil {
		t.Fatal(err)
	}
	program, provider, _ = strings.Cut(strings.TrimSpace(string(output)), "\n")
	return program, provider
}

// terraformProject is a folder with a Tenant for terraform.
type terraformProject struct {
	program, folder string
	env             []string
}

// applier may do what one needs to apply Tenants.
const applier = `
apiVersion: v1
kind: ServiceAccount
metadata: {namespace: default, name: deploy}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: deploy}
rules:
- {apiGroups: [tenant.einmal.dev], resources: [tenants], verbs: [get, list, watch, create, patch, update, delete]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: deploy}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: deploy}
subjects: [{kind: ServiceAccount, namespace: default, name: deploy}]
`

// configure writes the project, for an account that may do no more than it has to.
func (s *stage) configure(t *testing.T, program, provider string) terraformProject {
	t.Helper()
	s.Kubectl(t, applier, "apply", "-f", "-")
	p := terraformProject{program: program, folder: t.TempDir()}
	for name, text := range map[string]string{
		"main.tf": `terraform {
  required_providers {
    kubectl = {
      source = "gavinbunney/kubectl"
    }
  }
}

resource "kubectl_manifest" "tenant" {
  yaml_body = file("tenant.yaml")
  wait      = true # A deletion has ended when the operator has let go.
}
`,
		"tenant.yaml": `apiVersion: tenant.einmal.dev/v1
kind: Tenant
metadata:
  name: acme
spec:
  backendRef:
    name: local
  apps:
    - name: web
  deletionPolicy: Retain
`,
		// Instead of terraform init, which asks a registry.
		"terraform.rc": fmt.Sprintf("provider_installation {\n  dev_overrides {\n    \"gavinbunney/kubectl\" = %q\n  }\n  direct {}\n}\n", provider),
	} {
		if err := os.WriteFile(filepath.Join(p.folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p.env = append(os.Environ(), "KUBE_CONFIG_PATH="+s.ServiceAccount(t, "default", "deploy"),
		"TF_CLI_CONFIG_FILE="+filepath.Join(p.folder, "terraform.rc"), "TF_IN_AUTOMATION=1", "CHECKPOINT_DISABLE=1")
	return p
}

// apply applies the project.
func (p terraformProject) apply(t *testing.T, did string, args ...string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), p.program, append([]string{"apply", "-auto-approve", "-no-color", "-input=false"}, args...)...)
	command.Dir, command.Env = p.folder, p.env
	output, err := command.CombinedOutput()
	if err != nil || !strings.Contains(string(output), did) {
		t.Fatalf("terraform apply %v: error %v, want %q in\n%s", args, err, did, output)
	}
}

// versions are the Secrets with credentials, each with the version that it is of.
func (s *stage) versions(t *testing.T) map[string]string {
	t.Helper()
	var secrets corev1.SecretList
	if err := s.List(t.Context(), &secrets, client.InNamespace(credentialsNamespace)); err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, secret := range secrets.Items {
		found[secret.Name] = fmt.Sprintf("%s of %s, generation %s", secret.ResourceVersion, secret.UID, secret.Data[credential.GenerationKey])
	}
	return found
}
