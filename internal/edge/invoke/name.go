package invoke

import "context"

// nameKey is the key of a handler's name in its context.
type nameKey struct{}

// Named gives the context of an attempt the handler's name, so that what the handler asks of the API server can be told
// from the bookkeeping.
func Named(ctx context.Context, handler string) context.Context {
	return context.WithValue(ctx, nameKey{}, handler)
}

// Name is the handler that the context belongs to, "" for none.
func Name(ctx context.Context) string {
	name, _ := ctx.Value(nameKey{}).(string)
	return name
}
