package einmal

import "reflect"

// copyValue makes a deep copy of a value. Both values are addressable and have the same type. Unexported fields are
// copied by assignment.
func copyValue(out, in reflect.Value) {
	if copiedByItself(out, in) {
		return
	}
	out.Set(in)
	switch in.Kind() { //nolint:exhaustive // The others refer to nothing.
	case reflect.Struct:
		for i := range in.NumField() {
			if in.Type().Field(i).IsExported() {
				copyValue(out.Field(i), in.Field(i))
			}
		}
	case reflect.Array:
		for i := range in.Len() {
			copyValue(out.Index(i), in.Index(i))
		}
	case reflect.Pointer, reflect.Interface, reflect.Slice, reflect.Map:
		if !in.IsNil() {
			copyReferred(out, in)
		}
	}
}

// copiedByItself copies a value with the DeepCopyInto of its type. It reports whether there is one.
func copiedByItself(out, in reflect.Value) bool {
	if in.Type().PkgPath() == "" || reflect.PointerTo(in.Type()).NumMethod() == 0 {
		return false // Looking up a method by name would cost time.
	}
	own := in.Addr().MethodByName("DeepCopyInto")
	if !own.IsValid() || own.Type().NumIn() != 1 || own.Type().In(0) != out.Addr().Type() {
		return false
	}
	own.Call([]reflect.Value{out.Addr()})
	return true
}

// copyReferred makes a deep copy of what a pointer, interface, slice or map refers to.
func copyReferred(out, in reflect.Value) {
	switch in.Kind() { //nolint:exhaustive // Only these refer to something.
	case reflect.Pointer:
		out.Set(reflect.New(in.Type().Elem()))
		copyValue(out.Elem(), in.Elem())
	case reflect.Interface:
		out.Set(copied(in.Elem()))
	case reflect.Slice:
		out.Set(reflect.MakeSlice(in.Type(), in.Len(), in.Len()))
		for i := range in.Len() {
			copyValue(out.Index(i), in.Index(i))
		}
	case reflect.Map:
		out.Set(reflect.MakeMapWithSize(in.Type(), in.Len()))
		for entries := in.MapRange(); entries.Next(); {
			out.SetMapIndex(entries.Key(), copied(entries.Value()))
		}
	}
}

// copied returns a deep copy of a value that is not addressable.
func copied(in reflect.Value) reflect.Value {
	from, to := reflect.New(in.Type()).Elem(), reflect.New(in.Type()).Elem()
	from.Set(in)
	copyValue(to, from)
	return to
}
