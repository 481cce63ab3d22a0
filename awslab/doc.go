// Package awslab plays the parts of AWS that the tenant operator uses, so that it can be tried and tested without an account: SSM
// parameters, and the users and user groups of ElastiCache. It speaks their wire, so that the unmodified AWS SDK works against it
// through its BaseEndpoint, see Config. Users that may log in are written onto a real Redis, so that logins are real.
//
// It also plays what goes wrong: states that take their time, reads that lag behind writes, lost answers, refused connections, and any
// error a service may give; see Options and Fault. A journal tells which calls there were, and never a value.
//
// It shows what a program does on such days, not how AWS behaves: what is not documented there is a guess here, on the stern side, and
// says so. It checks neither signatures nor rights, keeps all in memory, and keeps no password but as a SHA-256.
package awslab
