// Package names computes the names of a tenant's and its apps' resources in other systems: roles and databases of PostgreSQL, users and
// keys of caches, and credential records. It has no side effects.
//
// A name depends only on the names of the tenant and the app, not on random values or on a status. So an operator that has lost all state
// finds existing resources, and a second run finds what the first one created.
//
//	what                              name                            at most
//	database, role that owns it       t_<tenant>                      63 bytes
//	roles that read and write, read   t_<tenant>_rw, t_<tenant>_ro    63 bytes
//	logins of an app                  t_<tenant>_<app>_a and _b       63 bytes
//	user of Redis                     t_<tenant>_<app>
//	user of ElastiCache               t-<tenant>-<app>-<hash>         40 characters
//	keys in a cache                   <tenant>:<the app's prefix>
//	record of a credential, by path   <prefix>/<tenant>/<app>/db
//	record of a credential, Secret    <tenant>.<app>.db               241 characters, and 12 for a generation
//
// All names are distinct. The parts of a name are DNS labels, and the character that joins them never occurs in a DNS label. If a part is
// not a DNS label, or the name would be too long (PostgreSQL silently truncates at 63 bytes), the name consists of the parts, reduced to
// letters, digits and hyphens and shortened, and a hash of the original parts, joined in a way that no other name uses. ElastiCache allows
// only hyphens as separators, so its names always contain the hash.
//
// Names never change: an operator with other rules would not find existing resources.
package names
