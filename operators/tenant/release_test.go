package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal/credential"
	v1 "github.com/einmal-operators/einmal/operators/tenant/api/v1"
	"github.com/einmal-operators/einmal/operators/tenant/names"
)

// keepsWhatItCannotReach shows that credentials go last: where the TenantBackend has no database or cache any more, the
// users there are not deleted, so neither are their credentials.
func (s *stage) keepsWhatItCannotReach(t *testing.T) {
	var counts counted
	look := s.look(t, "unreached", &counts)
	look.tenant.Status.Apps = look.run(t.Context()).apps(look.tenant, look.now)
	of := names.Tenant{Name: "unreached"}.App("web")
	db, cache := s.stored(t, of.DatabaseSecret()), s.stored(t, of.CacheSecret())
	whole := *look.backend
	look.databases, look.cache = nil, nil
	look.tenant.Spec.DeletionPolicy = v1.DeletionDelete
	found := look.run(t.Context())
	checkReasons(t, found, row{db: reasonSetUp, cache: reasonSetUp})
	if len(found.findings) != 2 {
		t.Errorf("it tells of %d: %+v", len(found.findings), found.findings)
	}
	look.tenant.Status.Apps = nil // The status is lost too.
	if _, reason := classify(look.remove(t.Context())); reason != reasonSetUp {
		t.Errorf("the tenant's deletion is %q", reason)
	}
	if s.stored(t, of.DatabaseSecret()) != db || s.stored(t, of.CacheSecret()) != cache {
		t.Error("a credential is another")
	}
	*look.backend = whole
	look.tenant.Spec.DropOwned = true
	if err := look.remove(t.Context()); err != nil {
		t.Errorf("with both: %v", err)
	}
	look.databases, look.cache = nil, nil
	if err := look.remove(t.Context()); err != nil {
		t.Errorf("where nothing is left: %v", err)
	}
}

// forgetsNothing shows that a deletion finds by their marks the logins, users and credentials of an app that neither the spec nor the status
// lists: it was taken out with the deletionPolicy Retain. Nothing of another tenant is found with them.
func (s *stage) forgetsNothing(t *testing.T) {
	var counts counted
	other := s.look(t, "leftover-two", &counts)
	other.run(t.Context())
	for name, wipe := range map[string]bool{"leftover": false, "wiped": true} {
		look := s.look(t, name, &counts)
		look.tenant.Spec.Apps = append(look.tenant.Spec.Apps, v1.App{
			Name: "old", Database: v1.Database{Access: v1.AccessOwner}, Cache: v1.Cache{Profile: v1.AccessReadWrite},
		})
		look.tenant.Status.Apps = look.run(t.Context()).apps(look.tenant, look.now)
		old := names.Tenant{Name: name}.App("old")
		db, cache := s.stored(t, old.DatabaseSecret()), s.stored(t, old.CacheSecret())
		look.tenant.Spec.Apps = look.tenant.Spec.Apps[:1]
		look.tenant.Status.Apps = look.run(t.Context()).apps(look.tenant, look.now)
		if len(look.tenant.Status.Apps) != 1 || s.authenticate(t, cache, name+":x") != nil {
			t.Errorf("%s: the app is not kept: %+v", name, look.tenant.Status.Apps)
		}
		look.tenant.Spec.DeletionPolicy, look.tenant.Spec.DropOwned = v1.DeletionDelete, true
		if wipe {
			look.tenant.Spec.Apps, look.tenant.Status = nil, v1.TenantStatus{}
		}
		if err := look.remove(t.Context()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := s.authenticate(t, cache, name+":x"); err == nil {
			t.Errorf("%s: the credential of the app that was taken out opens the cache", name)
		}
		var left int
		if s.query(t, &left, "SELECT count(*) FROM pg_roles WHERE starts_with(rolname, $1)", "t_"+name+"_"); left > 0 {
			t.Errorf("%s: %d roles are left, among them %s", name, left, db.Username)
		}
		if secrets := s.secretsOf(t, name); len(secrets) > 0 {
			t.Errorf("%s: the Secrets %v are left", name, secrets)
		}
	}
	s.works(t, "leftover-two")
}

// losesTheStatus takes an app out under the deletionPolicy Delete while the status is lost: nothing of it stays. A Tenant that was created again
// finds it and leaves it, because its spec may get that app later.
func (s *stage) losesTheStatus(t *testing.T) {
	var counts counted
	for name, generation := range map[string]int64{"lost-changed": 2, "lost-created": 1} {
		look := s.look(t, name, &counts)
		look.tenant.Spec.DeletionPolicy, look.tenant.Spec.DropOwned = v1.DeletionDelete, true
		look.tenant.Spec.Apps = append(look.tenant.Spec.Apps, v1.App{
			Name: "old", Database: v1.Database{Access: v1.AccessOwner}, Cache: v1.Cache{Profile: v1.AccessReadWrite},
		})
		look.run(t.Context())
		old := names.Tenant{Name: name}.App("old")
		db, cache := s.stored(t, old.DatabaseSecret()), s.stored(t, old.CacheSecret())
		look.tenant.Spec.Apps, look.tenant.Generation = look.tenant.Spec.Apps[:1], generation
		if err := look.run(t.Context()).failure(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		gone := s.logIn(t, name, db) != nil && s.authenticate(t, cache, name+":x") != nil && len(s.secretsOf(t, name)) == 4
		if gone != (generation > 1) {
			t.Errorf("%s: the app that was taken out is gone: %t; Secrets: %v", name, gone, s.secretsOf(t, name))
		}
	}
}

// sold shows that a tenant's database that an administrator has given to a role of others is named, and not changed. The apps may not connect to it
// any more. Their logins need only their own marks: a leaked credential can be revoked.
func (s *stage) sold(t *testing.T) {
	var counts counted
	look := s.look(t, "sold", &counts)
	of := names.Tenant{Name: "sold"}.App("web")
	look.run(t.Context())
	s.sql(t, "ALTER DATABASE t_sold OWNER TO admin")
	leaked := s.stored(t, of.DatabaseSecret())
	look.tenant.Spec.Credentials.Rotation = v1.Rotation{RequestID: "leak", Strategy: v1.InPlace}
	found := look.run(t.Context())
	for code, login := range map[string]credential.Record{"28P01": leaked, "42501": s.stored(t, of.DatabaseSecret())} {
		if answer, is := errors.AsType[*pgconn.PgError](s.logIn(t, "sold", login)); !is || answer.Code != code {
			t.Errorf("%v, want code %s: with the new password, only the right on the database is missing", answer, code)
		}
	}
	conditions, how := found.judge(look.tenant)
	is := map[string]string{}
	for _, one := range conditions {
		is[one.Type] = string(one.Status) + " " + one.Reason
	}
	inSync := meta.FindStatusCondition(conditions, v1.ConditionInSync)
	if is[v1.ConditionDatabaseReady] != "False "+reasonConflict || is[v1.ConditionInSync] != "False "+reasonConflict || how != blocked ||
		!strings.Contains(inSync.Message, "database t_sold belongs to role admin, want t_sold") {
		t.Errorf("the tenant is reported as %v: %v", how, conditions)
	}
}

// listsAgain shows that an app that was taken out with the deletionPolicy Retain has the same credentials when it is listed again.
func (s *stage) listsAgain(t *testing.T) {
	var counts counted
	look := s.look(t, "again", &counts)
	apps, of := look.tenant.Spec.Apps, names.Tenant{Name: "again"}.App("web")
	for _, listed := range [][]v1.App{apps, nil, apps} {
		look.tenant.Spec.Apps = listed
		found := look.run(t.Context())
		if err := found.failure(); err != nil {
			t.Fatal(err)
		}
		look.tenant.Status.Apps = found.apps(look.tenant, look.now)
		if err := s.authenticate(t, s.stored(t, of.CacheSecret()), "again:x"); err != nil {
			t.Errorf("with %d apps, the cache refuses the app: %v", len(listed), err)
		}
	}
	if counts != (counted{2, 2, 1, 1}) {
		t.Errorf("it has written %+v", counts)
	}
}

// secretsOf are the names of the Secrets with credentials of a tenant.
func (s *stage) secretsOf(t *testing.T, tenant string) []string {
	t.Helper()
	var secrets corev1.SecretList
	if err := s.List(t.Context(), &secrets, client.InNamespace(credentialsNamespace)); err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, secret := range secrets.Items {
		if strings.HasPrefix(secret.Name, tenant+".") {
			found = append(found, secret.Name)
		}
	}
	return found
}
