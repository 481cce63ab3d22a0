package einmal

import "reflect"

// Memo is what the handlers of one object remember of it in this process: a V, which begins as its zero value, and is the
// same for every handler of the object that asks for a V. Use a type of your own for each thing to remember. It is not
// stored anywhere: it is gone when the process ends, and when the object goes; one that is created again under the same
// name starts afresh.
//
//	type calls struct{ n int }
//
//	einmal.Memo[calls](c).n++
//
// Handlers of one object never run at the same time, so V needs no lock, unless you share it with goroutines of your own or with
// a daemon, which runs beside all others.
func Memo[V, T any](c *Change[T]) *V {
	memo, of := c.memo(), reflect.TypeFor[V]()
	found, has := memo.Load(of)
	if !has {
		found, _ = memo.LoadOrStore(of, new(V))
	}
	known, _ := found.(*V)
	return known
}
