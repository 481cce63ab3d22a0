package postgres_test

import (
	"context"
	"errors"
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/einmal-operators/einmal/credential"
	"github.com/einmal-operators/einmal/operators/tenant/postgres"
)

// The characters of generated DSNs. Those of secrets are in no constant text of an error, except where constants names them.
const (
	secretChars = "QXZJKVWCF02347@/?#:%' \\\"=&,[]+\n\t\r;.\x00"
	userChars   = "abdeu@:/%._-"
	hostChars   = "adhs1.:,/[]?@-%"
)

// spell maps each byte of a text to one of the characters, so that every input of the fuzzer is useful.
func spell(text, chars string) string {
	var spelled strings.Builder
	for _, char := range []byte(text) {
		if strings.IndexByte(chars, char) < 0 {
			char = chars[int(char)%len(chars)]
		}
		spelled.WriteByte(char)
	}
	return spelled.String()
}

// written returns DSNs in which a person has written a secret as the password and has not escaped it. In the last one the user is missing.
func written(user, secret, host string) []string {
	return []string{
		"postgres://" + user + ":" + secret + "@" + host + ":6543/postgres?sslmode=disable",
		"postgres://" + user + ":" + secret + "@" + host,
		"postgresql://" + user + ":" + secret + "@" + host + "," + host + ":6543/postgres?sslmode=verify-full",
		"postgres://" + user + ":" + secret + "@" + host + "/postgres?sslrootcert=/missing/ca.pem&sslmode=verify-full",
		"postgres://" + host + "/postgres?user=" + user + "&password=" + secret,
		"postgres://" + host + "/postgres?password=" + secret + "&user=" + user + "&sslmode=disable",
		"user=" + user + " password=" + secret + " host=" + host,
		"host=" + host + " user=" + user + " password=" + secret,
		"host=" + host + " password='" + secret + "' dbname='postgres' user='" + user + "'",
		"password=" + secret + " host=" + host + " port=6543 user=" + user + " sslmode=disable",
		"postgres://" + secret + "@" + host + "/postgres",
	}
}

// escaped returns DSNs in which the secret is escaped.
func escaped(secret string) []string {
	quoted := strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(secret)
	return []string{
		"postgres://" + url.UserPassword("admin", secret).String() + "@db.example.com/postgres",
		"postgres://db.example.com/postgres?user=admin&password=" + strings.ReplaceAll(url.QueryEscape(secret), "+", "%20"),
		"host=db.example.com user=admin password='" + quoted + "'",
	}
}

// network records the names that are looked up and the addresses that are dialed. There is no real network behind it.
type network struct {
	mu    sync.Mutex
	names []string
}

func (n *network) record(name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.names = append(n.names, name)
}

// lookup finds no host that begins with a d.
func (n *network) lookup(_ context.Context, host string) ([]string, error) {
	n.record(host)
	if strings.HasPrefix(host, "d") {
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	return []string{"198.51.100.1"}, nil
}

func (n *network) dial(_ context.Context, network, address string) (net.Conn, error) {
	n.record(address)
	return nil, &net.OpError{Op: "dial", Net: network, Err: errors.New("connection refused")}
}

// use opens a DSN and returns every text that a person or a name server gets, and whether Open accepted the DSN.
func use(t *testing.T, dsn string) (texts []string, accepted bool) {
	t.Helper()
	seen := &network{}
	server, err := postgres.OpenWith(postgres.Config{DSN: credential.NewPassword(dsn)}, seen.lookup, seen.dial)
	if err != nil {
		return []string{err.Error()}, false
	}
	defer server.Close()
	err = server.Check(t.Context())
	if err == nil {
		t.Fatal("there is no server, and the check succeeds")
	}
	return slices.Concat([]string{err.Error()}, server.Unverified(), seen.names), true
}

// constants removes the texts of remedies that have characters of secrets.
func constants() *strings.Replacer {
	return strings.NewReplacer(
		"@ as %40, / as %2F, ? as %3F, # as %23, % as %25 and a space as %20", "", `write ' in it as \' and \ as \\`, "",
	)
}

// leaked returns a piece of four characters of a secret that a text has, or "". Pieces without letters and digits do not count.
func leaked(secret, text string) string {
	text = constants().Replace(text)
	for i := 0; i+4 <= len(secret); i++ {
		if piece := secret[i : i+4]; strings.ContainsAny(piece, "QXZJKVWCF02347") && strings.Contains(text, piece) {
			return piece
		}
	}
	return ""
}

// secrets are passwords with the characters that separate parts of a DSN.
func secrets() []string {
	return []string{
		"QXZJ@KVWQ", "QXZJ/KVWQ", "QXZJ?KVWQ", "QXZJ#KVWQ", "QXZJ:KVWQ", "QXZJ%KVWQ", "QXZJ KVWQ", "QXZJ'KVWQ", `QXZJ"KVWQ`, `QXZJ\KVWQ`, "QXZJ&KVWQ",
		"QXZJ=KVWQ", "QXZJ,KVWQ", "QXZJ[KVWQ]", "QXZJ\nKVWQ", "QXZJ\x00KVWQ", "Q:X%ZJ/W#K@VQ", "4023/QXZJKVWQ", "4023?QXZJKVWQ", "@QXZJKVWQ", "QXZJKVWQ@",
		"QXZJKVWQ/", `QXZJKVWQ\`, "'QXZJKVWQ", "QXZJKVWQ'", "QXZJ KVWQ=ZXQJ", "QXZJ&KVWQ=ZXQJ", "QXZJ' KVWQ='ZXQJ", "QX@ZJKV@WQXZ", "QXZJ%40KVWQ", "QXZJ%00KVWQ",
		"QXZJ://KVWQ", " QXZJKVWQ", "QXZJKVWQ\n", "QXZJ%2FKVWQ:4023",
	}
}

// docs/operators/tenant.md, PostgreSQL: no part of a password reaches an error, a name lookup or an address.
func FuzzNothingOfADSNReachesAnError(f *testing.F) {
	f.Setenv("PGPASSFILE", filepath.Join(f.TempDir(), "QXZJKVWQ"))
	for _, secret := range secrets() {
		f.Add(secret, "admin", "db.example.com")
		f.Add(secret, "a@b", "192.0.2.1,hd-s")
		f.Add(secret, "a/b", "[2001:db8::1]")
		f.Add(secret, "", "")
	}
	f.Fuzz(func(t *testing.T, secret, user, host string) {
		secret = spell(secret, secretChars)
		for _, dsn := range written(spell(user, userChars), secret, spell(host, hostChars)) {
			texts, _ := use(t, dsn)
			keeps(t, secret, dsn, texts)
		}
		if strings.ContainsAny(secret, "\n\t\r\x00") {
			return
		}
		for _, dsn := range escaped(secret) {
			texts, accepted := use(t, dsn)
			keeps(t, secret, dsn, texts)
			if !accepted || !slices.Contains(texts, "db.example.com") {
				t.Errorf("%q: %q", dsn, texts)
			}
		}
	})
}

// keeps fails the test if a text has a piece of a secret, as it is written or decoded.
func keeps(t *testing.T, secret, dsn string, texts []string) {
	t.Helper()
	plain, _ := url.PathUnescape(secret)
	for _, text := range texts {
		if piece := leaked(secret, text) + leaked(plain, text); piece != "" {
			t.Errorf("%q: %q is in %q", dsn, piece, text)
		}
	}
}

// A DSN that can be read in two ways is refused, and the error says what is wrong and what to do.
func TestAnAmbiguousDSNIsRefusedWithARemedy(t *testing.T) {
	t.Parallel()
	for dsn, want := range map[string][]string{
		"postgres://admin:hu@sh@localhost/postgres":             {"second @", "@ as %40"},
		"postgres://odd:1234/hush@localhost/postgres":           {"/ or ?", "/ as %2F"},
		"postgres://admin:hu#sh@localhost/postgres":             {"a #", "# as %23"},
		"postgres://admin:hu%sh@localhost/postgres":             {"percent sign", "% as %25"},
		"postgres://admin:hu sh@localhost/postgres":             {"space", "a space as %20"},
		"postgres://admin%3Ahush@localhost/postgres":            {"the user contains", "colon that is not encoded"},
		"postgres://admin:1234/hush%40localhost":                {"the database contains", "percent-encode"},
		"postgres://admin:1234/hu/sh":                           {"the database contains", "percent-encode"},
		"postgres://admin%3Ahush%40localhost/postgres":          {"a host is not", "percent-encode"},
		"postgres://admin:x@localhost:hush/postgres":            {"a port is not", "correct the port"},
		"postgres://admin:x@localhost:0/postgres":               {"a port is not", "correct the port"},
		"postgres://admin:x@localhost/postgres?hush=1":          {"unknown option", "percent-encode"},
		"postgres://admin:x@localhost/postgres?user=hush":       {"given twice", "remove one"},
		"'postgres://admin:x@localhost/hush'":                   {"a URL must begin with", "correct the beginning"},
		"mysql://admin:x@localhost/hush":                        {"a URL must begin with", "correct the beginning"},
		"host=localhost user=admin password=x hush":             {"no value", "single quotes"},
		"host=localhost user=admin password=hu sh=x":            {"unknown option", "single quotes"},
		"host=localhost password='hu'sh' user=admin":            {"quotes or backslashes", "single quotes"},
		`password=hush\ host=localhost user=admin`:              {"quotes or backslashes", "single quotes"},
		"host=localhost dbname=postgres://admin:hush@localhost": {"the database contains", "correct the database"},
		"host=localhost user=admin password=hush\nsslmode=x":    {"line break", "remove it"},
		"": {"empty", "postgres://"},
		"postgres://a:x@localhost/postgres?sslrootcert=/no/hush": {"sslrootcert", "no such file", "mount the file"},
		"postgres://a:x@localhost/postgres?sslmode=hush":         {"an option is invalid", "sslmode"},
	} {
		_, err := postgres.Open(postgres.Config{DSN: credential.NewPassword(dsn)})
		if err == nil {
			t.Errorf("%q is accepted", dsn)
			continue
		}
		for _, part := range want {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%q: %v, want %q", dsn, err, part)
			}
		}
		if strings.Contains(err.Error(), "hu") {
			t.Errorf("%q: %v", dsn, err)
		}
	}
}

// DSNs that PostgreSQL documents are accepted, and name the right hosts.
func TestWellFormedDSNsAreAccepted(t *testing.T) {
	t.Parallel()
	for dsn, want := range map[string]string{
		"postgres://admin:x:y@db.example.com:6543/postgres?sslmode=verify-full":                              "db.example.com",
		"postgresql://admin:x@db_1.example.com./my%20db?application_name=a%20b&pool_max_conns=3&role=owners": "db_1.example.com.",
		"postgres://admin:x@h1,h2:6543/postgres?target_session_attrs=primary&statement_timeout=5s":           "h2",
		"postgres://admin:x@[2001:db8::1]:6543/postgres":                                                     "[2001:db8::1]:6543",
		"postgres://admin:x@%2Frun%2Fpostgresql/postgres":                                                    "/run/postgresql/.s.PGSQL.5432",
		"postgres:///postgres?host=db.example.com&user=admin&password=x&TimeZone=UTC":                        "db.example.com",
		"postgres://admin%40server:x@db.example.com/postgres?options=-c%20work_mem%3D4MB":                    "db.example.com",
		` host=db.example.com  user = admin password='a \' b \\' dbname=postgres `:                           "db.example.com",
		"host=2001:db8::1 port=6543 user=admin password=it's":                                                "[2001:db8::1]:6543",
	} {
		texts, accepted := use(t, dsn)
		if !accepted || !slices.Contains(texts, want) {
			t.Errorf("%q: %q, want %q", dsn, texts, want)
		}
	}
}

// Hosts and service files that the environment names are not quoted either.
func TestTheEnvironmentIsNotQuoted(t *testing.T) {
	t.Setenv("PGHOST", "admin:hush@localhost")
	if texts, accepted := use(t, "user=admin password=x dbname=postgres"); accepted || strings.Contains(texts[0], "hush") || !strings.Contains(texts[0], "PGHOST") {
		t.Errorf("PGHOST: %q", texts)
	}
	t.Setenv("PGHOST", "localhost")
	t.Setenv("PGSERVICE", "hush")
	t.Setenv("PGSERVICEFILE", "/missing/hush")
	if texts, accepted := use(t, "postgres://admin:x@localhost/postgres"); accepted || strings.Contains(texts[0], "hush") {
		t.Errorf("PGSERVICE: %q", texts)
	}
}
