package main

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal-operators/einmal/credential"
	"github.com/einmal-operators/einmal/operators/tenant/names"
)

// keepsForms shows which names and marks the systems and the store have of an app whose credentials are given. They outlive every process that
// writes them. A change must be intended: an operator of another release would not find what is its own.
func (s *stage) keepsForms(t *testing.T) {
	var counts counted
	look := s.look(t, "forms", &counts)
	look.clusterID = "cluster"
	of := names.Tenant{Name: "forms"}.App("web")
	for _, one := range [][2]string{{of.DatabaseSecret(), of.Logins()[0]}, {of.CacheSecret(), of.RedisUser()}} {
		err := look.store.Create(t.Context(), one[0], look.owner(of), credential.Record{
			Username: one[1], Password: credential.NewPassword("password-of-a-test"), Generation: 1, Created: time.Date(2026, 11, 2, 8, 0, 0, 0, time.UTC),
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := look.run(t.Context()).failure(); err != nil {
		t.Fatal(err)
	}
	var roles string
	s.query(t, &roles, `SELECT string_agg(rolname || ': ' || shobj_description(oid, 'pg_authid'), E'\n' ORDER BY rolname COLLATE "C")
		FROM pg_roles WHERE rolname LIKE 't\_forms%'`)
	admin := s.redis.Admin()
	defer func() { _ = admin.Close() }()
	user, err := admin.Do(t.Context(), "ACL", "GETUSER", of.RedisUser()).Slice()
	if err != nil {
		t.Fatal(err)
	}
	var patterns []string
	for i := 0; i+1 < len(user); i += 2 {
		if user[i] == "keys" || user[i] == "channels" {
			patterns = append(patterns, fmt.Sprint(user[i+1]))
		}
	}
	got := fmt.Sprintf("%s\n%s: %s\n%s\n", roles, of.RedisUser(), strings.Join(patterns, " "), strings.Join(s.secretsOf(t, "forms"), "\n"))
	want, err := os.ReadFile("testdata/forms.txt")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("testdata/forms.txt (-want +got):\n%s", diff)
	}
}
