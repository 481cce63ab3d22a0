package main

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// docs/operators/tenant.md, TenantBackend: a line break at the end of a value is not a part of it, and other control characters are refused. The
// error names the Secret and the key, and contains nothing of the value.
func TestALineBreakAtTheEndOfAnAdminSecretIsIgnored(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"hush": "hush", "hush\n": "hush", "hush\r\n": "hush", "  hush": "  hush", "hüsh\n": "hüsh",
	} {
		if got, err := value("local", adminSecret(given), "password"); err != nil || got.Reveal() != want {
			t.Errorf("%q: %q, %v", given, got.Reveal(), err)
		}
	}
	for given, remedy := range map[string]string{
		"": "add the key", "\n": "add the key", "hush\n\n": "on one line", "\nhush": "on one line", "hu\nsh": "on one line", "hush\t": "on one line",
		"hu\x00sh": "on one line", "hush\r\n\r\n": "on one line",
	} {
		_, err := value("local", adminSecret(given), "password")
		if !errors.Is(err, errSetUp) || strings.Contains(err.Error(), "hu") {
			t.Errorf("%q: %v", given, err)
			continue
		}
		for _, part := range []string{"TenantBackend local", `key "password"`, "Secret tenant-system/redis-admin", remedy} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%q: %v, want %q", given, err, part)
			}
		}
	}
}

// adminSecret returns the Secret of an administrator.
func adminSecret(password string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "tenant-system", Name: "redis-admin"}, Data: map[string][]byte{"password": []byte(password)},
	}
}
