// Package awslab emulates the parts of AWS that the tenant operator uses, so that the operator can be tested without an AWS account: SSM
// parameters, and the users and user groups of ElastiCache. It implements the wire protocols of these services, so that the unmodified
// AWS SDK works with it (see Config). It writes users that may log in to a real Redis, so that logins are real.
//
// It also emulates failures: slow state transitions, lost responses, refused connections and any error of a service (see Options and Fault). A
// journal records the calls, without values.
//
// It tests how a program handles failures; it does not define how AWS behaves. Where the documentation of AWS is silent, awslab makes a
// strict assumption, which a comment marks as a guess. It checks neither signatures nor permissions. It keeps all state in memory, and
// passwords only as SHA-256 digests.
package awslab
