// Package names makes the names of what a tenant and its apps have in other systems: roles and databases of PostgreSQL, users and keys
// of caches, records of credentials. It is pure.
//
// A name is made of the names of the tenant and the app and of nothing else: not of chance, not of a status. So whoever lost all memory
// finds what there is, and a second run finds what the first one made.
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
// Two names are never the same. The parts of a name are DNS labels, and no DNS label has the character that joins them. Where a part is
// no DNS label, or the whole is too long (PostgreSQL cuts at 63 bytes without a word), the name is made of letters, digits and hyphens
// of its parts, cut, and a hash of the parts as they are, joined in a way that no other name is. Only ElastiCache takes no character
// but the hyphen, so its names have the hash always.
//
// What was named stays named so: a change of these rules is another [Scheme].
package names
