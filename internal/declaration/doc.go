// Package declaration has what an operator declares: its kinds and handlers, related kinds, indexes, selections of kinds, settings and permissions. It does
// nothing, and starts no goroutine.
package declaration
