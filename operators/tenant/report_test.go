package main

import (
	"context"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/einmal-operators/einmal/credential"
	v1 "github.com/einmal-operators/einmal/operators/tenant/api/v1"
	"github.com/einmal-operators/einmal/operators/tenant/names"
)

// silent is a store that does not answer.
type silent struct{ credential.Store }

func (silent) Read(_ context.Context, name string, _ credential.Owner, _ int) (credential.Found, error) {
	return credential.Found{}, errors.New(name + " cannot be read")
}

// The same errors give the same text, so that a check does not write the status again.
func TestSeveralErrorsAreToldInOneOrder(t *testing.T) {
	t.Parallel()
	tenant := &v1.Tenant{}
	for _, app := range []string{"d", "b", "a", "c"} {
		tenant.Spec.Apps = append(tenant.Spec.Apps, v1.App{Name: app})
	}
	look := &pass{
		backend: &backend{store: store{Store: silent{}, database: names.App.DatabaseSecret, cache: names.App.CacheSecret}}, tenant: tenant,
	}
	first := look.remove(t.Context()).Error()
	for range 20 {
		if again := look.remove(t.Context()).Error(); again != first {
			t.Fatalf("two different texts:\n%s\n%s", first, again)
		}
	}
}

// A status holds UTF-8: what is not would be replaced by the API server, and be another than what is to be written, at each look.
func TestALongErrorIsNotCutWithinACharacter(t *testing.T) {
	t.Parallel()
	for prefix := range 3 {
		text := strings.Repeat("a", prefix) + strings.Repeat("日", longestProblem)
		if got := short(errors.New(text)); !utf8.ValidString(got) || len(got) > longestProblem || len(got) < longestProblem-3 {
			t.Errorf("%d bytes: %q", len(got), got)
		}
	}
	if got := short(errors.New("caf\xe9")); got != "caf\uFFFD" {
		t.Errorf("invalid UTF-8 became %q", got)
	}
}
