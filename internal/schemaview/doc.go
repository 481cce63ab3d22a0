// Package schemaview has how the objects of a kind are seen: what handlers declare of them, with what their schema says, and which changes of handlers are
// accepted. It starts no goroutine.
package schemaview
