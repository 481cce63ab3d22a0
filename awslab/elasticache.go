package awslab

import (
	"maps"
	"slices"
	"strings"
)

// The states of users and of user groups.
const (
	active    = "active"
	creating  = "creating"
	modifying = "modifying"
	deleting  = "deleting"
)

// defaultUser is the ID of a user that every account has. Every group must contain a user with this name.
const defaultUser = "default"

// Error codes that several actions return.
const (
	codeUserNotFound = "UserNotFound"
	codeBadValue     = "InvalidParameterValue"
	codeCombination  = "InvalidParameterCombination"
	codeUserState    = "InvalidUserState"
)

func (l *Lab) elasticache(c queryCall) (any, error) {
	switch c.action() {
	case "CreateUser":
		return l.createUser(c)
	case "ModifyUser":
		return l.modifyUser(c)
	case "DeleteUser":
		return l.deleteUser(c)
	case "DescribeUsers":
		return l.describeUsers(c)
	case "ModifyUserGroup":
		return l.modifyGroup(c)
	case "DescribeUserGroups":
		return l.describeGroups(c)
	default:
		return nil, refuse("InvalidAction", "awslab does not implement the action "+c.action())
	}
}

// members is a list in a response.
type members[T any] struct {
	Member []T `xml:"member"`
}

// described returns the outputs for a describe call, either of one resource or of a page of all. The marker of the next page is its first ID,
// or "" after the last page.
func described[T, O any](c queryCall, all map[string]T, key string, notFound func(string) error, output func(T) O) ([]O, string, error) {
	ids, marker := slices.Sorted(maps.Keys(all)), ""
	if id := strings.ToLower(c.form.Get(key)); id != "" {
		if _, there := all[id]; !there {
			return nil, "", notFound(id)
		}
		ids = []string{id}
	} else {
		from, _ := slices.BinarySearch(ids, c.form.Get("Marker"))
		ids = ids[from:]
	}
	if len(ids) > maxPage {
		ids, marker = ids[:maxPage], ids[maxPage]
	}
	found := make([]O, 0, len(ids))
	for _, id := range ids {
		found = append(found, output(all[id]))
	}
	return found, marker, nil
}
