// Package redis manages ACL users of a self-managed Redis or Valkey, on every node. Nodes do not replicate users (redis.io, ACL, "Key and
// channel permissions" and ACL SAVE), and a node without an ACL file loses them in a restart. So each node is queried and repaired
// separately.
//
// Passwords are set and compared as SHA-256, which ACL SETUSER and ACL GETUSER use. No password is sent over the network or into a server
// log, and a comparison is exact without a login.
//
// It requires Redis 7.0 or Valkey 7.2, or later, and was tried with Redis 7.0 and 8.0 and Valkey 8.0 and 8.1. The administrator needs these
// rights, and no keys: "+@connection +multi +exec +discard +acl|getuser +acl|setuser +acl|deluser +acl|users +acl|save +acl|cat
// +client|kill". Nodes.Check tests them. With "+script|kill" a person can end a script as the administrator; this package does not use that
// right.
// +client|kill". Nodes.Check tries them. With "+script|kill" a person can end a script as the administrator; the package does not.
package redis
