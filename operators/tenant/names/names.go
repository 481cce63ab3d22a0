package names

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"strings"
)

// The maximum lengths of names, in bytes. All names are ASCII.
const (
	// maxRole is PostgreSQL's NAMEDATALEN-1 (documentation, "Identifiers and Key Words"). PostgreSQL truncates longer names without an
	// error.
	maxRole = 63
	// maxElastiCacheUser is the maximum length of UserId in CreateUser (ElastiCache API reference).
	maxElastiCacheUser = 40
	// maxSecret is the maximum length of a Secret's name minus that of a generation: ".g" and ten digits.
	maxSecret = 253 - 12
	// maxPath leaves space for a prefix, a generation and the ARN in the 1011 characters of an SSM parameter name.
	maxPath = 640
	// hashLength is the number of hash characters in a name: 50 bits.
	hashLength = 10
)

// Tenant computes the names of a tenant's resources.
type Tenant struct {
	// Name is the name of the tenant: a DNS label. Other names are accepted too and give distinct results.
	Name string
}

// Database returns the name of the tenant's PostgreSQL database.
func (t Tenant) Database() string { return t.Owner() }

// Owner returns the PostgreSQL role that owns the database and its contents. It cannot log in.
func (t Tenant) Owner() string { return role("").of(t.Name) }

// ReadWrite returns the PostgreSQL role whose members read and write the contents of the database. It cannot log in.
func (t Tenant) ReadWrite() string { return role("_rw").of(t.Name) }

// ReadOnly returns the PostgreSQL role whose members read the contents of the database. It cannot log in.
func (t Tenant) ReadOnly() string { return role("_ro").of(t.Name) }

// App returns the names of an app of the tenant.
func (t Tenant) App(name string) App { return App{Tenant: t.Name, Name: name} }

// App computes the names of an app's resources.
type App struct {
	// Tenant and Name are the names of the tenant and of the app: DNS labels. Other names are accepted too and give distinct results.
	Tenant, Name string
}

// Logins returns the two PostgreSQL roles that the app uses to log in, one at a time. A role has one password, so a rotation switches
// between them.
func (a App) Logins() [2]string {
	return [2]string{role("_a").of(a.Tenant, a.Name), role("_b").of(a.Tenant, a.Name)}
}

// Login returns the login of a generation of the app's credential. Generations count from 1; odd ones use the first of Logins.
func (a App) Login(generation int) string { return a.Logins()[(generation+1)%2] }

// RedisUser returns the app's user in Redis.
func (a App) RedisUser() string {
	return form{prefix: "t_", join: "_", mark: "__", limit: maxPath}.of(a.Tenant, a.Name)
}

// ElastiCacheUser returns the ID of the app's user in ElastiCache, which is also its name. As AWS requires, it begins with a letter,
// contains lowercase letters, digits and single hyphens, and does not end with a hyphen.
func (a App) ElastiCacheUser() string {
	body := strings.Join([]string{"t", clean(a.Tenant), clean(a.Name)}, "-")
	for strings.Contains(body, "--") {
		body = strings.ReplaceAll(body, "--", "-")
	}
	return cut(body, maxElastiCacheUser-1-hashLength) + "-" + hash(a.Tenant, a.Name)
}

// AppOfRedisUser returns the app of the tenant that a Redis user is named after, and whether there is one: see App.RedisUser.
func (t Tenant) AppOfRedisUser(username string) (App, bool) {
	name, is := strings.CutPrefix(username, "t_"+t.Name+"_")
	app := t.App(name)
	return app, is && app.RedisUser() == username
}

// AppOfElastiCacheUser returns the app of the tenant that an ElastiCache user is named after, and whether it is known. A shortened ID does
// not contain the name of the app. See App.ElastiCacheUser.
func (t Tenant) AppOfElastiCacheUser(id string) (App, bool) {
	body, is := strings.CutPrefix(id, "t-"+t.Name+"-")
	if !is || len(body) <= 1+hashLength {
		return App{}, false
	}
	app := t.App(body[:len(body)-1-hashLength])
	return app, app.ElastiCacheUser() == id
}

// KeyPrefix returns the prefix of the app's keys in a cache: the tenant, a colon, and the app's own prefix, which may be "".
func (a App) KeyPrefix(own string) string {
	return form{mark: "__", suffix: ":", limit: maxPath}.of(a.Tenant) + own
}

// DatabaseRecord returns the path of the credential of the app's database, below the prefix of a store. Generations are below it: "/g1".
func (a App) DatabaseRecord() string { return a.record("/db") }

// CacheRecord returns the path of the credential of the app's cache user: see DatabaseRecord.
func (a App) CacheRecord() string { return a.record("/cache") }

func (a App) record(kind string) string {
	return form{join: "/", mark: "__", suffix: kind, limit: maxPath}.of(a.Tenant, a.Name)
}

// DatabaseSecret returns the name of the Secret with the credential of the app's database. The names of generations end with ".g" and a
// number.
func (a App) DatabaseSecret() string { return a.secret(".db") }

// CacheSecret returns the name of the Secret with the credential of the app's cache user: see DatabaseSecret.
func (a App) CacheSecret() string { return a.secret(".cache") }

func (a App) secret(kind string) string {
	return form{join: ".", mark: ".x.", suffix: kind, limit: maxSecret}.of(a.Tenant, a.Name)
}

func role(suffix string) form {
	return form{prefix: "t_", join: "_", mark: "__", suffix: suffix, limit: maxRole}
}

// form describes how a name is composed of its parts.
type form struct {
	prefix, join, suffix string
	// mark precedes a hash and occurs in no name without a hash. So no choice of parts gives the hashed name of other parts.
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

// isLabel reports whether a text is a DNS label, regardless of its length.
func isLabel(text string) bool {
	return text != "" && strings.IndexFunc(text, foreign) < 0 && strings.Trim(text, "-") == text
}

// foreign reports whether a character cannot occur in a DNS label.
func foreign(r rune) bool { return r != '-' && (r < 'a' || r > 'z') && (r < '0' || r > '9') }

// clean makes a DNS label of a text, regardless of its length. It is only for readability: different texts can give the same result.
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

// cut shortens an ASCII text to limit and makes it end with a letter or a digit.
func cut(text string, limit int) string {
	return strings.TrimRightFunc(text[:min(len(text), limit)], func(r rune) bool { return r == '-' || foreign(r) })
}

// hash returns a hash of texts that also depends on where each one ends.
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
