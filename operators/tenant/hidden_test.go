package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/einmal-operators/einmal/einmaltest"
	v1 "github.com/einmal-operators/einmal/operators/tenant/api/v1"
)

const (
	// spoiled is how many backends have an admin Secret that is written wrongly.
	spoiled = 120
	// firstHalf and secondHalf are in each password, and nowhere else.
	firstHalf, secondHalf = "QXZJ", "KVWQ"
)

// spoil returns the values of the admin Secrets of PostgreSQL and Redis, with the characters that separate parts of a DSN anywhere in the password.
func spoil(chance *rand.Rand) (dsn, username, password string) {
	breaks := []string{"@", "/", "?", "#", ":", "%", " ", "'", `"`, `\`, "&", "=", ",", "[", "]", "\n", "\r\n", "\t", "://", "%2F", "%zz", "@@", "4023/", ":6543/", ""}
	some := func() string { return breaks[chance.IntN(len(breaks))] }
	password = some() + firstHalf + some() + secondHalf + some()
	ways := []string{
		"postgres://admin:PASSWORD@HOST/postgres?sslmode=disable", "postgres://admin:PASSWORD@HOST", "postgresql://a@b:PASSWORD@HOST,127.0.0.1:1/postgres",
		"postgres://HOST/postgres?user=admin&password=PASSWORD", "user=admin password=PASSWORD host=HOST", "host=HOST user=admin password='PASSWORD'",
		"password=PASSWORD host=HOST port=1 user=admin", "postgres://PASSWORD@HOST/postgres", "PASSWORD", "postgres://admin:PASSWORD", "HOST PASSWORD",
	}
	hosts := []string{"127.0.0.1:1", "db.invalid", "127.0.0.1", "/missing"}
	fill := strings.NewReplacer("PASSWORD", password, "HOST", hosts[chance.IntN(len(hosts))])
	return fill.Replace(ways[chance.IntN(len(ways))]), "admin" + some(), password
}

// hides expects that no part of the password of an administrator is shown by the API, by the operator's log or by its metrics, whatever is wrong with
// the Secret.
func (s *stage) hides(t *testing.T, running *einmaltest.Program) {
	chance := rand.New(rand.NewPCG(1, 2))
	for i := range spoiled {
		dsn, username, password := spoil(chance)
		backend := s.local()
		backend.Name = fmt.Sprint("spoiled", i)
		backend.Spec.Postgres.DSNSecretRef.Name, backend.Spec.Cache.Redis.AdminSecretRef.Name = backend.Name+"-postgres", backend.Name+"-redis"
		if i%2 == 0 { // PostgreSQL is reported first.
			backend.Spec.Postgres = nil
		}
		s.make(t, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "tenant-system", Name: backend.Name + "-postgres"}, Data: map[string][]byte{"dsn": []byte(dsn)},
		})
		s.make(t, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "tenant-system", Name: backend.Name + "-redis"},
			Data:       map[string][]byte{"username": []byte(username), "password": []byte(password)},
		})
		s.make(t, backend)
		s.make(t, &v1.Tenant{
			ObjectMeta: metav1.ObjectMeta{Name: backend.Name},
			Spec:       v1.TenantSpec{BackendRef: v1.BackendRef{Name: backend.Name}, Apps: []v1.App{{Name: "web"}}},
		})
	}
	einmaltest.Eventually(t, "each backend and each tenant is reported", s.spoiledAreReported)
	for where, text := range map[string]string{
		"the API": s.Kubectl(t, "", "get", "tenants,tenantbackends,events,configmaps,leases", "-A", "-o", "yaml"),
		"the log": running.Log(), "the metrics": s.scraped(t),
	} {
		if !strings.Contains(text, "tenant") {
			t.Errorf("%s says nothing of tenants", where)
		}
		for line := range strings.Lines(text) {
			if strings.Contains(line, firstHalf) || strings.Contains(line, secondHalf) {
				t.Errorf("%s shows a part of a password: %s", where, line)
			}
		}
	}
}

// spoiledAreReported is nil if no spoiled backend is ready, and each tenant has a phase.
func (s *stage) spoiledAreReported(ctx context.Context) error {
	backends, tenants, reasons := &v1.TenantBackendList{}, &v1.TenantList{}, map[string]int{}
	if err := s.List(ctx, backends); err != nil {
		return err
	}
	if err := s.List(ctx, tenants); err != nil {
		return err
	}
	for _, one := range backends.Items {
		if ready := meta.FindStatusCondition(one.Status.Conditions, v1.ConditionReady); strings.HasPrefix(one.Name, "spoiled") && ready != nil {
			reasons[string(ready.Status)+" "+ready.Reason]++
		}
	}
	for _, one := range tenants.Items {
		if strings.HasPrefix(one.Name, "spoiled") && one.Status.Phase != "" {
			reasons["phase"]++
		}
	}
	total := 0
	for _, times := range reasons {
		total += times
	}
	if total != 2*spoiled || reasons["phase"] != spoiled || reasons["True Reached"] > 0 {
		return fmt.Errorf("they are reported as %v", reasons)
	}
	return nil
}

// scraped returns the operator's metrics.
func (s *stage) scraped(t *testing.T) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.metrics+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	var text bytes.Buffer
	if _, err := io.Copy(&text, answer.Body); err != nil {
		t.Fatal(err)
	}
	return text.String()
}
