package object

// Defaults describes the values that a schema fills in for absent fields. A default that is added to a schema appears in every
// object, including stored ones, and must not count as a change of the object.
type Defaults struct {
	// Value is the default; nil for none.
	// Value is the default, or nil if there is none.
	Value any
	// Fields holds the defaults of the named fields of a map. Others applies to all other values of the map, Items to the
	// elements of a list.
	Fields map[string]Defaults
	Others *Defaults
	Items  *Defaults
}

// Empty reports whether there are no defaults at any depth.
func (d Defaults) Empty() bool {
	return d.Value == nil && len(d.Fields) == 0 && d.Others == nil && d.Items == nil
}

// Fill returns the value with the defaults filled in. It does not modify the value.
func (d Defaults) Fill(value any) any {
	switch value := value.(type) {
	case Body:
		return d.fillMap(value)
	case []any:
		if d.Items == nil {
			return value
		}
		filled := make([]any, len(value))
		for i, item := range value {
			filled[i] = d.Items.Fill(item)
		}
		return filled
	default:
		return value
	}
}

func (d Defaults) fillMap(body Body) Body {
	filled := shallow(body)
	for name, field := range d.Fields {
		value, found := filled[name]
		if !found && field.Value != nil {
			value, found = field.Value, true
		}
		if found {
			filled[name] = field.Fill(value)
		}
	}
	if d.Others == nil {
		return filled
	}
	for name, value := range filled {
		if _, named := d.Fields[name]; !named {
			filled[name] = d.Others.Fill(value)
		}
	}
	return filled
}
