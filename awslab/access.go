package awslab

import (
	"regexp"
	"slices"
	"strings"
)

// checkAccess rejects access strings that contain anything but flags, patterns and command rules. In particular, they must not contain
// passwords.
func checkAccess(access string) error {
	rule := regexp.MustCompile(`^(on|off|allkeys|resetkeys|allchannels|resetchannels|allcommands|nocommands|%(R|W|RW)~.+|[~&].+|[+-]@?[a-zA-Z0-9|_-]+)$`)
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
		case part == "allkeys":
			keys = []string{"~*"}
		case part == "resetkeys":
			keys = nil
		case part == "allchannels":
			channels = []string{"&*"}
		case part == "resetchannels":
			channels = nil
		case part[0] == '~' || part[0] == '%':
			keys = add(keys, part)
		case part[0] == '&':
			channels = add(channels, part)
		case part == "allcommands" || part == "+@all":
			commands = []string{"+@all"}
		case part == "nocommands" || part == "-@all":
			commands = nil
		default:
			commands = add(commands, part)
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

func add(all []string, part string) []string {
	if slices.Contains(all, part) {
		return all
	}
	return append(all, part)
}
