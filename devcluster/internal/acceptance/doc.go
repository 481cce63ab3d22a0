// Package acceptance tests the built binary as users run it. It does not import
// the Kubernetes servers, because compiling them again with the race detector
// would take many minutes.
package acceptance
