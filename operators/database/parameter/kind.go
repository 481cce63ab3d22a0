package parameter

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

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
	// step is what a number must be a multiple of. Zero means that all numbers are right.
	step float64
	// tight is true if no space can be between a number and its unit.
	tight bool
	// form describes the values besides numbers and words, and fits reports whether a value is one of them. It is nil if there are none.
	form string
	fits func(value string) bool
}

// check returns what a value must be, or "" if it is that.
func (k kind) check(value string) string {
	if slices.Contains(k.words, value) || k.fits != nil && k.fits(value) {
		return ""
	}
	if k.number {
		if leadingZero(value) {
			return "must not begin with 0, because a server can take it for an octal number; it must be " + k.describe()
		}
		amount, is := k.amount(value)
		if is && amount >= k.least && amount <= k.most && (k.step == 0 || math.Mod(amount, k.step) == 0) {
			return ""
		}
	}
	return "must be " + k.describe()
}

// leadingZero reports whether a number begins with a zero that is not its only digit before the point.
func leadingZero(value string) bool {
	digits := strings.TrimPrefix(value, "-")
	return len(digits) > 1 && digits[0] == '0' && digits[1] >= '0' && digits[1] <= '9'
}

// amount returns a number in the base unit.
func (k kind) amount(value string) (float64, bool) {
	digits := strings.TrimRight(value, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
	unit := value[len(digits):]
	if !k.tight {
		digits = strings.TrimSuffix(digits, " ")
	}
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
		if k.step > 0 {
			text += ", and a multiple of " + short(k.step)
		}
		options = append(options, text)
	}
	if len(k.words) > 0 {
		options = append(options, "one of "+strings.Join(k.words, ", "))
	}
	if k.form != "" {
		options = append(options, k.form)
	}
	return strings.Join(options, ", or ")
}

func short(number float64) string { return strconv.FormatFloat(number, 'f', -1, 64) }

func whole(least, most float64) kind {
	return kind{number: true, whole: true, least: least, most: most}
}

func fraction(least, most float64) kind { return kind{number: true, least: least, most: most} }

func measured(units map[string]float64, base string, factor, least, most float64) kind {
	return kind{number: true, whole: true, units: units, base: base, factor: factor, least: least, most: most}
}
