package object

// Defaults is what a schema fills in where an object leaves something out. A default that is added to a schema shows in
// every object, stored ones too, and is no change of theirs.
type Defaults struct {
	// Value is the default; nil for none.
	Value any
	// Fields are the defaults of a map's named fields, Others those of all its other values, Items those of a list's
	// elements.
	Fields map[string]Defaults
	Others *Defaults
	Items  *Defaults
}

// Empty tells whether nothing is filled in anywhere.
func (d Defaults) Empty() bool {
	return d.Value == nil && len(d.Fields) == 0 && d.Others == nil && d.Items == nil
}

// Fill returns the value with what the schema fills in; the value itself stays as it was.
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
