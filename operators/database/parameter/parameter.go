// Package parameter decides which parameters of PostgreSQL a Database can set, and to what.
package parameter

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Check returns what is wrong with parameters, each with its name and the remedy, in the order of the names. The memory is what the server can use; nil
// means that it has no limit. Names and ranges are those of the manual of PostgreSQL, chapter "Server Configuration".
func Check(parameters map[string]string, memory *resource.Quantity) []string {
	var wrong []string
	for _, name := range slices.Sorted(maps.Keys(parameters)) {
		known, is := list()[name]
		if !is {
			wrong = append(wrong, name+": cannot be set; docs/operators/database.md lists the parameters that can be")
			continue
		}
		if problem := known.check(parameters[name]); problem != "" {
			wrong = append(wrong, fmt.Sprintf("%s: %s, not %q", name, problem, parameters[name]))
		}
	}
	if len(wrong) > 0 || memory == nil {
		return wrong
	}
	if shared, set := parameters[sharedBuffers]; set && list()[sharedBuffers].bytes(shared) >= memory.Value() {
		wrong = append(wrong, fmt.Sprintf("%s: must be less than the memory of the server, %s, not %q; a quarter of it is usual", sharedBuffers, memory, shared))
	}
	return wrong
}

const sharedBuffers = "shared_buffers"

// kind says which values a parameter can have.
type kind struct {
	// units are the factors of the units that a number can have, none if it has no unit.
	units map[string]float64
	// base is the unit of a number without one, and factor its factor.
	base   string
	factor float64
	// least and most limit a number, in the base unit. Fractions are allowed if whole is false.
	least, most float64
	whole       bool
	// words are the values besides numbers.
	words []string
	// number is true if numbers are allowed.
	number bool
}

// check returns what a value must be, or "" if it is that.
func (k kind) check(value string) string {
	if slices.Contains(k.words, value) {
		return ""
	}
	if k.number {
		amount, is := k.amount(value)
		if is && amount >= k.least && amount <= k.most {
			return ""
		}
	}
	return "must be " + k.describe()
}

// amount returns a number in the base unit.
func (k kind) amount(value string) (float64, bool) {
	digits := strings.TrimRight(value, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
	unit := value[len(digits):]
	digits = strings.TrimSuffix(digits, " ")
	if strings.Trim(digits, "-0123456789.") != "" || k.whole && strings.Contains(digits, ".") {
		return 0, false
	}
	amount, err := strconv.ParseFloat(digits, 64)
	if err != nil || unit == "" {
		return amount, err == nil
	}
	factor, known := k.units[unit]
	return amount * factor / k.factor, known
}

// bytes returns the number of bytes that a valid value means.
func (k kind) bytes(value string) int64 {
	amount, _ := k.amount(value)
	return int64(amount * k.factor)
}

func (k kind) describe() string {
	var options []string
	if k.number {
		text := "a number"
		if k.whole {
			text = "a whole number"
		}
		text += fmt.Sprintf(" from %s to %s", short(k.least), short(k.most))
		if len(k.units) > 0 {
			units := slices.SortedFunc(maps.Keys(k.units), func(a, b string) int { return cmp.Compare(k.units[a], k.units[b]) })
			text += fmt.Sprintf(" in %s, or with one of the units %s", k.base, strings.Join(units, ", "))
		}
		options = append(options, text)
	}
	if len(k.words) > 0 {
		options = append(options, "one of "+strings.Join(k.words, ", "))
	}
	return strings.Join(options, ", or ")
}

func short(number float64) string { return strconv.FormatFloat(number, 'f', -1, 64) }

// Configuration returns lines of a configuration file that set valid parameters.
func Configuration(parameters map[string]string) string {
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(parameters)) {
		fmt.Fprintf(&text, "%s = '%s'\n", name, strings.ReplaceAll(parameters[name], "'", "''"))
	}
	return text.String()
}
