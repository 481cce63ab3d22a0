// Volumeclaim is an operator for volumes that live as long as the object that asks for them: it creates a
// PersistentVolumeClaim for each EphemeralVolumeClaim, grows it and labels it as the object says, and leaves its removal to
// the garbage collector. Objects that are for certain pods are deleted when these do not need them any more.
package main

func main() {
	operator().Main()
}
