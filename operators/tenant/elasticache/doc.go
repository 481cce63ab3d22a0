// Package elasticache manages users of an Amazon ElastiCache for Redis or Valkey with role-based access control. Users is a
// credential.Rotator.
//
// The AWS API defines a user, and the cache itself shows which password it accepts: passwords are verified by a login. A user has its ID as
// its name and the owner's mark among the patterns of its access string (names.CacheMark). It is a member of one of the given user groups,
// which must be attached to the cache. AWS applies changes asynchronously: a change in progress is ErrSettling, which is not a failure.
//
// A working user needs both credential.User.Converge and Users.ConvergeAccess. Call both, even if the first returns an error, and repeat
// until both succeed. Each group has one writer that batches changes of its members, because AWS rejects changes while a group is being
// modified.
package elasticache
