// Package redis keeps users of a Redis or Valkey that is its own master: ACL users, on every node of it. Nodes do not tell each other
// of users (redis.io, ACL, "Key and channel permissions" and ACL SAVE), and one that starts without a file of ACLs has none; so each is
// asked, and each is repaired by itself.
//
// Passwords are set and compared as SHA-256, which ACL SETUSER and ACL GETUSER speak: none goes over the wire or into a log of the
// server, and whether one is right is known exactly, with no login.
//
// It needs Redis 7.0 or Valkey 7.2, or later, and was tried with Redis 7.0 and 8.0 and Valkey 8.0 and 8.1. It needs an administrator with
// these rights, and no keys: "+@connection +multi +exec +discard +acl|getuser +acl|setuser +acl|deluser +acl|users +acl|save +acl|cat
// +client|kill". Nodes.Check tries them. With "+script|kill" a person can end a script as the administrator; the package does not.
package redis
