package invoke

import "context"

// nameKey is the key of a handler's name in its context.
type nameKey struct{}

// Named adds the name of the handler to the context of an attempt, so that requests of the handler can be distinguished from those of
// Einmal itself.
func Named(ctx context.Context, handler string) context.Context {
	return context.WithValue(ctx, nameKey{}, handler)
}

// Name returns the handler that the context belongs to, or "".
func Name(ctx context.Context) string {
	name, _ := ctx.Value(nameKey{}).(string)
	return name
}
