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
	// buffers is the parameter that must be less than the memory of the server, and usual says how much less.
	buffers, usual string
	// line returns the line of the configuration file that sets a parameter.
	line func(name, value string) string
	// together returns what is wrong with parameters that are right on their own. It is nil if that cannot be.
	together func(parameters map[string]string) []string
}

// Check returns what is wrong with parameters, each with its name and the remedy, in the order of the names. The memory is what the server can use; nil
// means that it has no limit.
func (e Engine) Check(parameters map[string]string, memory *resource.Quantity) []string {
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
	if len(wrong) > 0 || memory == nil {
		return wrong
	}
	if size, set := parameters[e.buffers]; set && e.list[e.buffers].bytes(size) >= memory.Value() {
		wrong = append(wrong, fmt.Sprintf("%s: must be less than the memory of the server, %s, not %q; %s", e.buffers, memory, size, e.usual))
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
