package awslab

import (
	"slices"
	"strings"
)

// group is a version of a user group. Adding and Removing are pending changes.
type group struct {
	ID, Status              string
	Users, Adding, Removing []string
}

// AddGroup creates an active user group that contains the user "default". It does nothing if the group exists or the ID is empty.
func (l *Lab) AddGroup(id string) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	id = strings.ToLower(id)
	if _, there := l.groups[id]; !there && id != "" {
		l.attachable = append(l.attachable, id)
		l.groups[id] = group{ID: id, Status: active, Users: []string{defaultUser}}
	}
}

func groupNotFound(id string) error {
	return refuse("UserGroupNotFound", "User group "+id+" not found.")
}

// groupOutput is a group in a response.
type groupOutput struct {
	UserGroupID       string `xml:"UserGroupId"`
	Status            string
	UserIDs           members[string] `xml:"UserIds"`
	ReplicationGroups members[string]
}

func (l *Lab) groupOutput(g group) groupOutput {
	return groupOutput{
		UserGroupID: g.ID, Status: g.Status, UserIDs: members[string]{g.Users}, ReplicationGroups: members[string]{l.attached(g)},
	}
}

// attached returns the caches that a group is attached to: the only cache for the oldest group that is not detached, else none.
func (l *Lab) attached(g group) []string {
	at := slices.IndexFunc(l.attachable, func(id string) bool { return !slices.Contains(l.options.Detached, id) })
	if at < 0 || l.attachable[at] != g.ID {
		return nil
	}
	return []string{"lab"}
}

// checkMembers checks the members of a group, given all members and the added ones. That an added user must be active is a guess, and so
// is the error code for too many users.
func (l *Lab) checkMembers(all, added []string) error {
	for _, id := range added {
		found, there := l.users[id]
		if !there {
			return userNotFound(id)
		}
		if found.Status != active {
			return refuse(codeBadValue, "User "+id+" is not in active state: "+found.Status+".")
		}
	}
	names := map[string]bool{}
	for _, id := range all {
		name := l.users[id].Name
		if names[name] {
			return refuse("DuplicateUserName", "Duplicate user name "+name+".")
		}
		names[name] = true
	}
	switch {
	case !names[defaultUser]:
		return refuse("DefaultUserRequired", "User group needs to contain a user with the user name default.")
	case len(all) > l.options.MaxGroupUsers:
		return refuse("UserQuotaExceeded", "The quota of users in a user group has been exceeded.")
	}
	return nil
}

func (l *Lab) modifyGroup(c queryCall) (any, error) {
	id := strings.ToLower(c.form.Get("UserGroupId"))
	found, there := l.groups[id]
	add, remove := c.ids("UserIdsToAdd"), c.ids("UserIdsToRemove")
	switch {
	case !there:
		return nil, groupNotFound(id)
	case found.Status != active:
		return nil, refuse("InvalidUserGroupState", "User group "+id+" is not in active state: "+found.Status+".")
	case len(add)+len(remove) == 0:
		return nil, refuse(codeCombination, "No modifications were requested.")
	}
	for _, gone := range remove {
		if !slices.Contains(found.Users, gone) {
			return nil, refuse(codeBadValue, "User "+gone+" is not a member of user group "+id+".")
		}
	}
	for _, come := range add {
		if slices.Contains(found.Users, come) {
			return nil, refuse(codeCombination, "User "+come+" is already a member of user group "+id+".")
		}
	}
	if err := l.checkMembers(merged(found.Users, add, remove), add); err != nil {
		return nil, err
	}
	l.regroup(found, add, remove)
	return l.groupOutput(l.groups[id]), nil
}

func merged(users, add, remove []string) []string {
	all := slices.Concat(users, add)
	return slices.DeleteFunc(all, func(id string) bool { return slices.Contains(remove, id) })
}

// regroup starts a change of a group's members.
func (l *Lab) regroup(g group, add, remove []string) {
	g.Status, g.Adding, g.Removing = modifying, add, remove
	l.groups[g.ID] = g
	l.after(l.options.Groups, func() { l.regrouped(g.ID) })
}

// regrouped completes a change of a group's members. If Redis does not accept it, the group stays modifying and the change is retried.
func (l *Lab) regrouped(id string) {
	before := l.groups[id]
	next := before
	next.Users, next.Adding, next.Removing, next.Status = merged(before.Users, before.Adding, before.Removing), nil, nil, active
	l.groups[id] = next
	for _, changed := range slices.Concat(before.Adding, before.Removing) {
		if err := l.project(l.users[changed]); err != nil {
			l.groups[id] = before
			l.after(retryProjection, func() { l.regrouped(id) })
			return
		}
	}
}

func (l *Lab) describeGroups(c queryCall) (any, error) {
	found, marker, err := described(c, l.groups, "UserGroupId", groupNotFound, l.groupOutput)
	return struct {
		UserGroups members[groupOutput]
		Marker     string `xml:",omitempty"`
	}{members[groupOutput]{found}, marker}, err
}
