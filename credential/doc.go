// Package credential generates values such as passwords once, and keeps them in a store that does not overwrite them.
//
// These rules make it safe to call again, at any time, from any number of processes:
//
//   - A value is stored, create-only, before it is used anywhere. A concurrent caller uses the value that was stored first.
//   - Only the store's own answer that nothing exists counts as absence. After any other error nothing is generated.
//   - A stored value is used only if it carries the mark of its owner and is valid. It is never overwritten.
//
// So a password that is in use is not replaced: not by a lost status, a repeated call, a crash at any point or a race of replicas. A store
// cannot distinguish a lost value from one that never existed. Therefore User.Converge also asks the other system whether the user exists, and
// generates nothing if it does.
package credential
