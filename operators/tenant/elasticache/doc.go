// Package elasticache gives apps users of an ElastiCache for Redis or Valkey with role-based access control. Users is a credential.Rotator.
//
// What a user is, AWS says, and what it accepts, the cache itself: passwords are proved by logging in. A user has its own id as its name, the
// owner's mark among the patterns of its access string (names.CacheMark), and is in one of the user groups that are given, of which each
// must be attached to the cache. All that AWS does takes its time: what is on its way is an ErrSettling, and is no failure.
//
// To have a user that works takes both credential.User.Converge and Users.ConvergeAccess, whatever the first says, each again until it is
// done. Changes of a group's members go through one writer for each group, which puts them together: while a group is modifying, nobody
// can change it.
//
// # Rights
//
// The operator's role needs elasticache:DescribeUsers and DescribeUserGroups on all; CreateUser, ModifyUser, DeleteUser and, with tags,
// AddTagsToResource on users; and ModifyUserGroup on the groups. It must reach the cache's endpoint.
package elasticache
