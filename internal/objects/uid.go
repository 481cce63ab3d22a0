package objects

import (
	"sync"
	"time"
)

// mostEnds limits how many ends of objects are remembered, which takes about a megabyte.
const mostEnds = 10_000

// End remembers when the deletion of an object was handled. The first time counts.
func (o *Objects[Known]) End(uid string, at time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ends == nil {
		o.ends = map[string]time.Time{}
	}
	if _, known := o.ends[uid]; known {
		return
	}
	o.ends[uid], o.ended = at, append(o.ended, uid)
	if len(o.ended) > mostEnds {
		delete(o.ends, o.ended[0])
		o.ended = o.ended[1:]
	}
}

// EndOf returns when the deletion of an object was handled, or zero if that is not known.
func (o *Objects[Known]) EndOf(uid string) time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.ends[uid]
}

// Memo gives access to what handlers remember of an object in this process. It is made when it is first asked for.
func (o *Objects[Known]) Memo(uid string) func() *sync.Map {
	return func() *sync.Map {
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.memos == nil {
			o.memos = map[string]*sync.Map{}
		}
		if o.memos[uid] == nil {
			o.memos[uid] = &sync.Map{}
		}
		return o.memos[uid]
	}
}

// ForgetMemo removes what handlers remember of an object.
func (o *Objects[Known]) ForgetMemo(uid string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.memos, uid)
}
