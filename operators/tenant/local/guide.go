package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/wait"

	v1 "github.com/einmal-operators/einmal/operators/tenant/api/v1"
	"github.com/einmal-operators/einmal/operators/tenant/servers"
)

// guide prints how to log in as a tenant once the tenant is ready.
type guide struct {
	*systems
	*log.Logger

	// einmal is the program that reaches the cluster.
	einmal string
	// told remembers what was printed about each tenant.
	told map[string]string
}

// patience is the wait before the cluster is queried again.
const patience = time.Second

// watch watches tenants until ctx ends. It retries while the cluster does not answer or does not have the kind Tenant.
func (g *guide) watch(ctx context.Context) {
	g.told = map[string]string{}
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		_ = g.follow(ctx) // It fails until the cluster has started, and when it stops.
	}, patience)
}

// follow prints what has changed until the watch ends.
func (g *guide) follow(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	command := g.kubectl(ctx, "get", "tenants.tenant.einmal.dev", "--watch", "--output", "json")
	output, err := command.StdoutPipe()
	if err != nil {
		return err
	}
	if err := command.Start(); err != nil {
		return err
	}
	for decoder := json.NewDecoder(output); err == nil; {
		tenant := &v1.Tenant{}
		if err = decoder.Decode(tenant); err == nil {
			g.look(tenant)
		}
	}
	cancel()
	return errors.Join(err, command.Wait())
}

// kubectl is a command for the cluster of this folder.
func (g *guide) kubectl(ctx context.Context, args ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, g.einmal, append([]string{"kubectl"}, args...)...) //nolint:gosec // The caller names it.
	command.WaitDelay = patience
	servers.EndWithParent(command, syscall.SIGTERM)
	return command
}

// look prints how to log in once the tenant is ready, and why if it is not.
func (g *guide) look(tenant *v1.Tenant) {
	if tenant.DeletionTimestamp != nil {
		delete(g.told, tenant.Name)
		return
	}
	status, said := tenant.Status, g.told[tenant.Name]
	if said == string(v1.Ready) || status.ObservedGeneration != tenant.Generation {
		return
	}
	switch status.Phase {
	case v1.Ready, v1.Rotating:
		g.told[tenant.Name] = string(v1.Ready)
		g.Printf("the tenant %s is ready. To log in, in another terminal, in this folder:\n%s", tenant.Name, g.lines(tenant))
	case v1.Blocked, v1.Degraded:
		ready := meta.FindStatusCondition(status.Conditions, v1.ConditionReady)
		if ready == nil || said == ready.Message {
			return
		}
		g.told[tenant.Name] = ready.Message
		g.Printf("the tenant %s is not ready: %s: %s", tenant.Name, ready.Reason, ready.Message)
	case v1.Pending, v1.Provisioning, v1.Suspended, v1.Deleting:
	}
}

// lines returns commands that log in with the credentials of a tenant. They read the credentials when they run.
func (g *guide) lines(tenant *v1.Tenant) string {
	lines := []string{fmt.Sprintf(
		`secret() { %s kubectl get secret --namespace %s "$1" --output "jsonpath={.data.$2}" | base64 -d; }`, g.einmal, recordsNamespace,
	)}
	host, port, _ := strings.Cut(g.postgres.Address(), ":")
	cacheHost, cachePort, _ := strings.Cut(g.redis.Address(), ":")
	psql, cli := client("psql", "EINMAL_POSTGRES_BIN", ""), client("redis-cli", "EINMAL_REDIS_SERVER", "..")
	for _, app := range tenant.Status.Apps {
		if at := app.Database; at != nil {
			lines = append(lines, fmt.Sprintf(`PGPASSWORD="$(secret %[1]s password)" %[2]s -h %[3]s -p %[4]s -U "$(secret %[1]s username)" %[5]s`,
				at.Record, psql, host, port, at.Database))
		}
		if at := app.Cache; at != nil {
			lines = append(lines, fmt.Sprintf(`REDISCLI_AUTH="$(secret %[1]s password)" %[2]s -h %[3]s -p %[4]s --user "$(secret %[1]s username)"`,
				at.Record, cli, cacheHost, cachePort))
		}
	}
	return strings.Join(lines, "\n")
}

// client is how to call a client of a server: by its name, or where the server's programs are.
func client(name, variable, up string) string {
	if _, err := exec.LookPath(name); err == nil {
		return name
	}
	beside := filepath.Join(os.Getenv(variable), up, name)
	if _, err := os.Stat(beside); err == nil {
		return beside
	}
	return name
}
