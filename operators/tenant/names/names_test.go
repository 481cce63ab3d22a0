package names_test

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal-operators/einmal/operators/tenant/names"
)

// An operator with other names would not find what was named so far.
func TestNamesStay(t *testing.T) {
	acme, web := names.Tenant{Name: "acme"}, names.Tenant{Name: "acme"}.App("web")
	long := names.Tenant{Name: strings.Repeat("a", 60)}
	got := map[string]string{
		"database":        acme.Database(),
		"owner":           acme.Owner(),
		"read write":      acme.ReadWrite(),
		"read only":       acme.ReadOnly(),
		"logins":          fmt.Sprint(web.Logins()),
		"login 1":         web.Login(1),
		"login 2":         web.Login(2),
		"login 3":         web.Login(3),
		"redis":           web.RedisUser(),
		"elasticache":     web.ElastiCacheUser(),
		"keys":            web.KeyPrefix("sessions:"),
		"path db":         web.DatabaseRecord(),
		"path cache":      web.CacheRecord(),
		"secret db":       web.DatabaseSecret(),
		"secret cache":    web.CacheSecret(),
		"long owner":      long.Owner(),
		"long group":      long.ReadWrite(),
		"long login":      long.App("web").Login(1),
		"odd login":       names.Tenant{Name: `x"; DROP ROLE admin; --`}.App("Ünïcode").Login(1),
		"odd path":        names.Tenant{Name: "../other"}.App("web").DatabaseRecord(),
		"odd secret":      names.Tenant{Name: "a.b"}.App("C").DatabaseSecret(),
		"odd keys":        names.Tenant{Name: "*"}.App("web").KeyPrefix(""),
		"empty login":     names.Tenant{}.App("").Login(2),
		"cut elasticache": names.Tenant{Name: "twenty-one-characters"}.App("a--b-and-more").ElastiCacheUser(),
	}
	want := map[string]string{
		"cut elasticache": "t-twenty-one-characters-a-b-a-drjyozrl2m",
		"database":        "t_acme",
		"elasticache":     "t-acme-web-5ce6rdiqnk",
		"empty login":     "t_x_x__g5dqr77xog_b",
		"keys":            "acme:sessions:",
		"login 1":         "t_acme_web_a",
		"login 2":         "t_acme_web_b",
		"login 3":         "t_acme_web_a",
		"logins":          "[t_acme_web_a t_acme_web_b]",
		"long group":      "t_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa__hldv66rzas_rw",
		"long login":      "t_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa__6suwpzx7as_a",
		"long owner":      "t_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
		"odd keys":        "x__u76cv7kqvs:",
		"odd login":       "t_x---drop-role-admin_n-code__hr37sdb3vg_a",
		"odd path":        "other/web__tacev43knk/db",
		"odd secret":      "a-b.c.x.ba3bjy7b6z.db",
		"owner":           "t_acme",
		"path cache":      "acme/web/cache",
		"path db":         "acme/web/db",
		"read only":       "t_acme_ro",
		"read write":      "t_acme_rw",
		"redis":           "t_acme_web",
		"secret cache":    "acme.web.cache",
		"secret db":       "acme.web.db",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("names changed (-want +got):\n%s", diff)
	}
}

// PostgreSQL cuts at 63 bytes, not characters, without a word; AWS, SSM and Kubernetes have limits of
// their own. No name is longer, or has a character that they do not take, whatever it is made of.
func TestNamesAreTakenByTheSystems(t *testing.T) {
	label := `[a-z0-9]([-a-z0-9]*[a-z0-9])?`
	valid := map[string]*regexp.Regexp{
		"role":        regexp.MustCompile(`^t_[-a-z0-9_]+$`),
		"elasticache": regexp.MustCompile(`^t(-[a-z0-9]+)+$`),
		"secret":      regexp.MustCompile(`^` + label + `(\.` + label + `)*$`),
		"path":        regexp.MustCompile(`^([-a-z0-9_]+/)+(db|cache)$`),
		"keys":        regexp.MustCompile(`^[-a-z0-9_]+:$`),
		"redis":       regexp.MustCompile(`^t_[-a-z0-9_]+$`),
	}
	limits := map[string]int{"role": 63, "elasticache": 40, "secret": 253 - len(".g2147483647"), "path": 700, "keys": 700, "redis": 700}
	chance := rand.New(rand.NewPCG(1, 2))
	for range 3_000 {
		app := randomApp(chance)
		for kind, all := range namesOf(app) {
			for _, name := range all {
				if len(name) > limits[kind] || !valid[kind].MatchString(name) {
					t.Fatalf("%#v has the %s name %q of %d bytes, which is not taken", app, kind, name, len(name))
				}
			}
		}
	}
}

// The join is ambiguous with '-' (a-b and c, a and b-c), cut names can be the same, and an author may choose names
// that look like those of another's hash. Different tenants and apps never have a name in common, nor do the roles of one.
func TestNoTwoHaveANameInCommon(t *testing.T) {
	chance := rand.New(rand.NewPCG(3, 4))
	holder := map[string]string{}
	claim := func(kind, name, by string) {
		if other, taken := holder[kind+name]; taken && other != by {
			t.Fatalf("%s %q is that of %s, and of %s", kind, name, other, by)
		}
		holder[kind+name] = by
	}
	for range 3_000 {
		app := randomApp(chance)
		for _, one := range []names.App{app, impostor(app)} {
			for kind, all := range namesOf(one) {
				for i, name := range all {
					claim(kind, name, ownerOf(kind, i, one))
				}
			}
		}
	}
}

// What a user of a cache is named after is found again, and no other: not by the tenant of a shorter name, and not in an id that was cut.
func TestTheAppOfAUserIsFoundByItsName(t *testing.T) {
	acme, corp := names.Tenant{Name: "acme"}, names.Tenant{Name: "acme-corp"}
	long := acme.App("a-name-of-thirty-two-characters-")
	for what, test := range map[string]struct {
		find func(string) (names.App, bool)
		name string
		want names.App
	}{
		"a user":                         {acme.AppOfRedisUser, "t_acme_web-2", acme.App("web-2")},
		"a user of another":              {acme.AppOfRedisUser, corp.App("web").RedisUser(), names.App{}},
		"no user":                        {acme.AppOfRedisUser, "t_acme_", names.App{}},
		"another app's":                  {acme.AppOfRedisUser, "t_acme_Web", names.App{}},
		"a user of ElastiCache":          {acme.AppOfElastiCacheUser, acme.App("web-2").ElastiCacheUser(), acme.App("web-2")},
		"another's user of ElastiCache":  {acme.AppOfElastiCacheUser, corp.App("web").ElastiCacheUser(), names.App{}},
		"no user of ElastiCache":         {acme.AppOfElastiCacheUser, "t-acme-", names.App{}},
		"a hash that is not the app's":   {acme.AppOfElastiCacheUser, "t-acme-web-0123456789", names.App{}},
		"an id that was cut has no name": {acme.AppOfElastiCacheUser, long.ElastiCacheUser(), names.App{}},
	} {
		if app, is := test.find(test.name); is != (test.want.Name != "") || is && app != test.want {
			t.Errorf("%s: %s is %+v, %t", what, test.name, app, is)
		}
	}
}

// ownerOf tells what a name of namesOf is of: the first roles are the tenant's, and all its apps have them in common; so are its keys.
func ownerOf(kind string, i int, app names.App) string {
	if kind == "keys" || kind == "role" && i < 3 {
		return fmt.Sprintf("%s %d of tenant %q", kind, i, app.Tenant)
	}
	return fmt.Sprintf("%s %d of app %q", kind, i, app)
}

func namesOf(app names.App) map[string][]string {
	tenant, logins := names.Tenant{Name: app.Tenant}, app.Logins()
	return map[string][]string{
		"role":        {tenant.Owner(), tenant.ReadWrite(), tenant.ReadOnly(), logins[0], logins[1]},
		"redis":       {app.RedisUser()},
		"elasticache": {app.ElastiCacheUser()},
		"keys":        {app.KeyPrefix("")},
		"path":        {app.DatabaseRecord(), app.CacheRecord()},
		"secret":      {app.DatabaseSecret(), app.CacheSecret()},
	}
}

// impostor is an app whose plain names look like those that another has with a hash.
func impostor(app names.App) names.App {
	login := strings.TrimSuffix(strings.TrimPrefix(app.Login(1), "t_"), "_a")
	cut := strings.LastIndex(login, "_")
	return names.App{Tenant: strings.TrimRight(login[:cut], "_"), Name: login[cut+1:]}
}

// randomApp has names that are easily mistaken for another's.
func randomApp(chance *rand.Rand) names.App {
	return names.App{Tenant: randomName(chance), Name: randomName(chance)}
}

func randomName(chance *rand.Rand) string {
	alphabets := []string{"ab-", "a", "ab_.", "aä漢😀", "rw o_", "a\"'; \x00*:/"}
	alphabet := []rune(alphabets[chance.IntN(len(alphabets))])
	lengths := []int{0, 1, 2, 3, 5, 20, 28, 29, 48, 58, 59, 60, 61, 63, 253}
	var text strings.Builder
	for range lengths[chance.IntN(len(lengths))] {
		text.WriteRune(alphabet[chance.IntN(len(alphabet))])
	}
	return text.String()
}
