package awslab

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
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
	case "CreateUserGroup":
		return l.createGroup(c)
	case "ModifyUserGroup":
		return l.modifyGroup(c)
	case "DeleteUserGroup":
		return l.deleteGroup(c)
	case "DescribeUserGroups":
		return l.describeGroups(c)
	case "AddTagsToResource", "RemoveTagsFromResource", "ListTagsForResource":
		return l.tagResource(c)
	default:
		return nil, refuse("InvalidAction", "awslab does not implement the action "+c.action())
	}
}

// members is a list in a response.
type members[T any] struct {
	Member []T `xml:"member"`
}

// tagResource adds, removes or lists the tags of the user or group with the given ARN.
func (l *Lab) tagResource(c queryCall) (any, error) {
	arn := c.form.Get("ResourceName")
	parts := strings.Split(arn, ":")
	kind, id := "", parts[len(parts)-1]
	if len(parts) == 7 {
		kind = parts[5]
	}
	foundUser, isUser := l.users[id].latest()
	foundGroup, isGroup := l.groups[id].latest()
	tags := foundUser.Tags
	switch {
	case kind == "user" && isUser:
	case kind == "usergroup" && isGroup:
		tags = foundGroup.Tags
	case kind == "usergroup":
		return nil, groupNotFound(id)
	case kind == "user":
		return nil, userNotFound(id)
	default:
		return nil, refuse("InvalidARN", "The requested Amazon Resource Name (ARN) does not refer to an existing resource.")
	}
	if c.action() != "ListTagsForResource" {
		tags = maps.Clone(tags)
		maps.Copy(tags, c.tags())
		for _, key := range c.list("TagKeys.member") {
			delete(tags, key)
		}
		foundUser.Tags, foundGroup.Tags = tags, tags
		if kind == "user" {
			l.keepUser(foundUser)
		} else {
			keep(l.groups, id, foundGroup, true)
		}
	}
	type list struct {
		Tag []tag
	}
	return struct{ TagList list }{list{sortedTags(tags)}}, nil
}

// page returns the IDs of a page, sorted and starting at the marker, and the marker of the next page, or "" for the last page.
func (c queryCall) page(ids []string) ([]string, string, error) {
	slices.Sort(ids)
	size, err := strconv.Atoi(cmp.Or(c.form.Get("MaxRecords"), strconv.Itoa(maxPage)))
	if err != nil || size < 1 || size > maxPage {
		return nil, "", refuse(codeBadValue, "The parameter MaxRecords must be from 1 to 100.")
	}
	from, _ := slices.BinarySearch(ids, c.form.Get("Marker"))
	ids = ids[from:]
	if len(ids) <= size {
		return ids, "", nil
	}
	return ids[:size], ids[size], nil
}

// described returns the outputs for a describe call, either of one resource or of a page of all, as lagging reads see them.
func described[T, O any](l *Lab, c queryCall, all map[string]*history[T], key string, output func(T) O) ([]O, string, error) {
	seen := map[string]T{}
	for id, versions := range all {
		if found, there := versions.asOf(l.options.ReadLag); there {
			seen[id] = found
		}
	}
	ids, marker := []string{strings.ToLower(c.form.Get(key))}, ""
	if _, there := seen[ids[0]]; !there && ids[0] != "" {
		if key == "UserId" {
			return nil, "", userNotFound(ids[0])
		}
		return nil, "", groupNotFound(ids[0])
	}
	if ids[0] == "" {
		var err error
		if ids, marker, err = c.page(slices.Collect(maps.Keys(seen))); err != nil {
			return nil, "", err
		}
	}
	found := make([]O, 0, len(ids))
	for _, id := range ids {
		found = append(found, output(seen[id]))
	}
	return found, marker, nil
}
