// Package parameter decides which parameters of its server a Database can set, and to what.
package parameter

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Engine has the parameters of one kind of server. PostgreSQL and MariaDB return those that there are.
type Engine struct {
	// list are the parameters that can be set.
	list map[string]kind
	// bounds are the sizes that must be less than what the server has.
	bounds []bound
	// line returns the line of the configuration file that sets a parameter.
	line func(name, value string) string
	// together returns what is wrong with parameters that are right on their own. It is nil if that cannot be.
	together func(parameters map[string]string) []string
}

// Room is what a server has. A nil field means that it has no limit.
type Room struct {
	// Memory is the memory that it can use.
	Memory *resource.Quantity
	// Volume is the size of its volume.
	Volume *resource.Quantity
}

// bound is a parameter with a size that must be less than a part of the room, and what is usual.
type bound struct {
	name  string
	of    func(Room) *resource.Quantity
	what  string
	usual string
}

func memory(has Room) *resource.Quantity { return has.Memory }

func volume(has Room) *resource.Quantity { return has.Volume }

// Check returns what is wrong with parameters, each with its name and the remedy, in the order of the names.
func (e Engine) Check(parameters map[string]string, has Room) []string {
	var wrong []string
	for _, name := range slices.Sorted(maps.Keys(parameters)) {
		known, is := e.list[name]
		if !is {
			wrong = append(wrong, name+": cannot be set; docs/operators/database.md lists the parameters that can be")
			continue
		}
		if problem := known.check(parameters[name]); problem != "" {
			wrong = append(wrong, fmt.Sprintf("%s: %s, not %q", name, problem, parameters[name]))
		}
	}
	if len(wrong) == 0 && e.together != nil {
		wrong = e.together(parameters)
	}
	if len(wrong) > 0 {
		return wrong
	}
	for _, one := range e.bounds {
		size, set := parameters[one.name]
		if most := one.of(has); set && most != nil && e.list[one.name].bytes(size) >= most.Value() {
			wrong = append(wrong, fmt.Sprintf("%s: must be less than %s, %s, not %q; %s", one.name, one.what, most, size, one.usual))
		}
	}
	return wrong
}

// Lines returns the lines of a configuration file that set valid parameters.
func (e Engine) Lines(parameters map[string]string) string {
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(parameters)) {
		text.WriteString(e.line(name, parameters[name]))
	}
	return text.String()
}
