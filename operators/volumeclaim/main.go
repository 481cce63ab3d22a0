// Volumeclaim is an operator for volumes that exist as long as the object that requests them. It creates a PersistentVolumeClaim for each
// EphemeralVolumeClaim, and applies changes of its size and labels. The garbage collector removes it. Claims with a podSelector are deleted
// when the selected pods do not need them any more.
package main

func main() {
	operator().Main()
}
