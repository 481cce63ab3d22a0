// Package kindloop serves a kind as long as the API server does: it waits until the kind is found, and ends what is done for it when the kind vanishes. It does
// so for kinds that are handled, related to others, chosen at run time, and watched by a replica that waits to be elected.
//
// Loop.Run starts one goroutine, and returns after it has ended.
package kindloop
