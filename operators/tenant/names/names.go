package names

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"fmt"
	"strings"
)

// Scheme is the version of the rules by which names are made. Names of another version are other names: to change a rule is to
// count this up, and to go on finding what was made by the old one.
const Scheme = 1

// What the systems take, in bytes. All names are ASCII.
const (
	// maxRole is NAMEDATALEN-1 of PostgreSQL (documentation, "Identifiers and Key Words"); what is longer is cut there without an error.
	maxRole = 63
	// maxElastiCacheUser is that of UserId in CreateUser (ElastiCache API reference).
	maxElastiCacheUser = 40
	// maxSecret is what Kubernetes takes for the name of a Secret, less a generation: ".g" and ten digits.
	maxSecret = 253 - 12
	// maxPath leaves room for a prefix, a generation and the ARN in the 1011 characters of a parameter's name in SSM.
	maxPath = 640
	// maxLabel is that of a DNS label (RFC 1123).
	maxLabel = 63
	// hashLength is the number of characters of a hash in a name: 50 bits.
	hashLength = 10
)

// Tenant names what a tenant has.
type Tenant struct {
	// Name is that of the tenant. It should pass Check; names are made, and differ, for any other as well.
	Name string
}

// Database is the tenant's database in PostgreSQL.
func (t Tenant) Database() string { return t.Owner() }

// Owner is the role of PostgreSQL that owns the database and what is in it. Nobody logs in as it.
func (t Tenant) Owner() string { return role("").of(t.Name) }

// ReadWrite is the role of PostgreSQL whose members read and write what is in the database. Nobody logs in as it.
func (t Tenant) ReadWrite() string { return role("_rw").of(t.Name) }

// ReadOnly is the role of PostgreSQL whose members read what is in the database. Nobody logs in as it.
func (t Tenant) ReadOnly() string { return role("_ro").of(t.Name) }

// App names what an app of the tenant has. A tenant's apps have different names.
func (t Tenant) App(name string) App { return App{Tenant: t.Name, Name: name} }

// App names what an app of a tenant has.
type App struct {
	// Tenant and Name are those of the tenant and of the app. They should pass Check; names are made, and differ, for any other as well.
	Tenant, Name string
}

// Logins are the two roles of PostgreSQL that the app logs in as, one at a time: a rotation goes from one to the other, as a role has one
// password.
func (a App) Logins() [2]string {
	return [2]string{role("_a").of(a.Tenant, a.Name), role("_b").of(a.Tenant, a.Name)}
}

// Login is the login of a generation of the app's credential, which counts from 1: the first of Logins for odd ones.
func (a App) Login(generation int) string { return a.Logins()[(generation+1)%2] }

// RedisUser is the app's user in Redis.
func (a App) RedisUser() string {
	return form{prefix: "t_", join: "_", mark: "__", limit: maxPath}.of(a.Tenant, a.Name)
}

// ElastiCacheUser is the id of the app's user in ElastiCache, and its name as well. It begins with a letter, has lower-case letters, digits
// and single hyphens, and does not end with one, as AWS asks for.
func (a App) ElastiCacheUser() string {
	body := strings.Join([]string{"t", clean(a.Tenant), clean(a.Name)}, "-")
	for strings.Contains(body, "--") {
		body = strings.ReplaceAll(body, "--", "-")
	}
	return cut(body, maxElastiCacheUser-1-hashLength) + "-" + hash(a.Tenant, a.Name)
}

// AppOfRedisUser is the app of the tenant that a user in Redis is named after, and whether there is one: see App.RedisUser.
func (t Tenant) AppOfRedisUser(username string) (App, bool) {
	name, is := strings.CutPrefix(username, "t_"+t.Name+"_")
	app := t.App(name)
	return app, is && app.RedisUser() == username
}

// AppOfElastiCacheUser is the app of the tenant that a user of ElastiCache is named after, and whether that is known: the name of an app is
// not in an id that was cut. See App.ElastiCacheUser.
func (t Tenant) AppOfElastiCacheUser(id string) (App, bool) {
	body, is := strings.CutPrefix(id, "t-"+t.Name+"-")
	if !is || len(body) <= 1+hashLength {
		return App{}, false
	}
	app := t.App(body[:len(body)-1-hashLength])
	return app, app.ElastiCacheUser() == id
}

// KeyPrefix is what the app's keys in a cache begin with: the tenant, a colon, and the app's own prefix, which may be "". It is a text and not
// a pattern: CheckKeyPrefix tells whether the app's prefix holds nothing that a pattern understands.
func (a App) KeyPrefix(own string) string {
	return form{mark: "__", suffix: ":", limit: maxPath}.of(a.Tenant) + own
}

// DatabaseRecord is where a store of paths keeps the credential of the app's database: below a prefix such as "/einmal", which is used as
// it is. Generations are below it: "/g1".
func (a App) DatabaseRecord(prefix string) string { return a.record(prefix, "/db") }

// CacheRecord is where a store of paths keeps the credential of the app's user in a cache: see DatabaseRecord.
func (a App) CacheRecord(prefix string) string { return a.record(prefix, "/cache") }

func (a App) record(prefix, kind string) string {
	return prefix + form{prefix: "/", join: "/", mark: "__", suffix: kind, limit: maxPath}.of(a.Tenant, a.Name)
}

// DatabaseSecret is the Secret with the credential of the app's database. Those of generations have ".g" and a number behind it.
func (a App) DatabaseSecret() string { return a.secret(".db") }

// CacheSecret is the Secret with the credential of the app's user in a cache: see DatabaseSecret.
func (a App) CacheSecret() string { return a.secret(".cache") }

func (a App) secret(kind string) string {
	return form{join: ".", mark: ".x.", suffix: kind, limit: maxSecret}.of(a.Tenant, a.Name)
}

// Check returns an error for the name of a tenant or an app that is no DNS label (RFC 1123): of 1 to 63 lower-case letters, digits
// and hyphens, with none of those at an end. What is "tenant" or "app", for the error.
func Check(what, name string) error {
	if isLabel(name) && len(name) <= maxLabel {
		return nil
	}
	return fmt.Errorf("the name of the %s is %q: give it 1 to %d lower-case letters, digits and hyphens, with a letter or digit at both ends",
		what, name, maxLabel)
}

// CheckKeyPrefix returns an error for an app's own prefix of keys that could be understood as a pattern, or as more than one word: it
// may have up to 128 letters, digits and any of ":._/-".
func CheckKeyPrefix(own string) error {
	const limit = 128
	allowed := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune(":._/-", r)
	}
	if len(own) <= limit && strings.IndexFunc(own, func(r rune) bool { return !allowed(r) }) < 0 {
		return nil
	}
	return fmt.Errorf("the prefix of keys is %q: give it at most %d letters, digits and any of \":._/-\"", own, limit)
}

func role(suffix string) form {
	return form{prefix: "t_", join: "_", mark: "__", suffix: suffix, limit: maxRole}
}

// form is how a name is put together of its parts.
type form struct {
	prefix, join, suffix string
	// mark stands before a hash, and in no name without one: so nobody can choose parts that give the name of others' hash.
	mark  string
	limit int
}

func (f form) of(parts ...string) string {
	plain := f.prefix + strings.Join(parts, f.join) + f.suffix
	if allLabels(parts) && len(plain) <= f.limit {
		return plain
	}
	cleaned := make([]string, len(parts))
	for i, part := range parts {
		cleaned[i] = clean(part)
	}
	tail := f.mark + hash(parts...) + f.suffix
	return cut(f.prefix+strings.Join(cleaned, f.join), f.limit-len(tail)) + tail
}

func allLabels(parts []string) bool {
	for _, part := range parts {
		if !isLabel(part) {
			return false
		}
	}
	return true
}

// isLabel tells whether a text is a DNS label, but for its length.
func isLabel(text string) bool {
	return text != "" && strings.IndexFunc(text, foreign) < 0 && strings.Trim(text, "-") == text
}

// foreign tells that a character is in no DNS label.
func foreign(r rune) bool { return r != '-' && (r < 'a' || r > 'z') && (r < '0' || r > '9') }

// clean makes a DNS label of a text, but for its length. It is for the eye: different texts can give the same.
func clean(text string) string {
	replaced := strings.Map(func(r rune) rune {
		if foreign(r) {
			return '-'
		}
		return r
	}, strings.ToLower(text))
	if replaced = strings.Trim(replaced, "-"); replaced == "" {
		return "x"
	}
	return replaced
}

// cut makes an ASCII text no longer than limit, and lets it end with a letter or a digit.
func cut(text string, limit int) string {
	return strings.TrimRightFunc(text[:min(len(text), limit)], func(r rune) bool { return r == '-' || foreign(r) })
}

// hash tells texts apart, and where one ends and the next begins.
func hash(parts ...string) string {
	digest := sha256.New()
	for _, part := range parts {
		var length [8]byte
		binary.BigEndian.PutUint64(length[:], uint64(len(part)))
		_, _ = digest.Write(length[:])
		_, _ = digest.Write([]byte(part))
	}
	return base32Lower(digest.Sum(nil))[:hashLength]
}

func base32Lower(data []byte) string {
	return strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(data))
}
