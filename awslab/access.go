package awslab

import (
	"regexp"
	"slices"
	"strings"
)

// checkAccess rejects access strings that contain anything but the flags on, off and resetchannels, patterns and command rules. In particular, they must not
// contain passwords.
func checkAccess(access string) error {
	rule := regexp.MustCompile(`^(on|off|resetchannels|[~&].+|[+-]@?[a-zA-Z0-9|_-]+)$`)
	for part := range strings.FieldsSeq(access) {
		if !rule.MatchString(part) {
			return refuse(codeBadValue, "The access string has an error: syntax error in a modifier.")
		}
	}
	return nil
}

// normalize formats an access string like ACL LIST of Redis: the flag, the keys, the channels, then the commands, starting with all or
// none. AWS also returns an access string in another form than it was sent; that it has exactly this form is a guess.
func normalize(access string) string {
	flag, keys, channels, commands := "off", []string(nil), []string(nil), []string(nil)
	for part := range strings.FieldsSeq(access) {
		switch {
		case part == "on" || part == "off":
			flag = part
		case part == "resetchannels":
			channels = nil
		case part[0] == '~':
			keys = append(keys, part)
		case part[0] == '&':
			channels = append(channels, part)
		case part == "+@all":
			commands = []string{"+@all"}
		case part == "-@all":
			commands = nil
		default:
			commands = append(commands, part)
		}
	}
	if !slices.Contains(channels, "&*") {
		channels = slices.Insert(channels, 0, "resetchannels")
	}
	if len(commands) == 0 || commands[0] != "+@all" {
		commands = slices.Insert(commands, 0, "-@all")
	}
	return strings.Join(slices.Concat([]string{flag}, keys, channels, commands), " ")
}
