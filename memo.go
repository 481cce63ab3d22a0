package einmal

import (
	"reflect"
	"sync"
)

// Memo returns the value of type V that the handlers of one object share in this process. It starts as the zero value.
// Use a type of your own for each thing to remember:
//
//	type calls struct{ n int }
//
//	einmal.Memo[calls](c).n++
//
// The value is not stored anywhere: it is lost when the process ends or the object is deleted. An object that is
// created again under the same name starts with a zero value.
//
// Handlers of one object never run concurrently, so V needs no lock, unless you share it with goroutines of your own or
// with a daemon.
func Memo[V, T any](c *Change[T]) *V {
	if c.memo == nil { // A test calls the handler.
		own := &sync.Map{}
		c.memo = func() *sync.Map { return own }
	}
	memo, of := c.memo(), reflect.TypeFor[V]()
	found, has := memo.Load(of)
	if !has {
		found, _ = memo.LoadOrStore(of, new(V))
	}
	known, _ := found.(*V)
	return known
}
