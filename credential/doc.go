// Package credential makes values once, such as passwords, and keeps them in a store that does not overwrite.
//
// The rules that make it safe to be called again, at any time, by any number of processes:
//
//   - A value is stored, create-only, before anything else hears of it. Whoever comes second uses the value of the first.
//   - Only the store's own word that there is nothing is absence. Any other error decides nothing: nothing is generated then.
//   - What the store holds is used only if it carries the mark of its owner, and is what it should be. It is never overwritten.
//
// So neither a lost status, a repeated call, a crash at any point nor a race of replicas replaces a password that is in use.
// What the store has lost cannot be told from what never was: ask the system that the credential is for whether it knows the user, and
// generate nothing if it does.
package credential
