// Package kindstore keeps what an operator stores about the records of one kind outside of the objects: up to which age every object has had a record
// (docs/decisions/0005), and in which carriers records may be (docs/decisions/0003). Both are in the ConfigMap of the operator, by scope: a namespace, or ""
// for all of them.
//
// Run writes changes until its context ends. All other methods can be called by several goroutines at the same time.
package kindstore
