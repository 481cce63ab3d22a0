// Package selected serves the kinds that selections choose at run time, by what discovery tells of them.
//
// Chooser.Run starts a goroutine for each kind that is chosen, and returns after they have ended.
package selected
