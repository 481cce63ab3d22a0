package awslab

import (
	"cmp"
	"slices"
	"strings"
)

// group is a version of a user group. Adding and Removing are pending changes.
type group struct {
	ID, Engine, Status      string
	Users, Adding, Removing []string
	Tags                    map[string]string
}

// AddGroup creates an active user group that contains the user "default". It does nothing if the group exists or the ID is empty.
func (l *Lab) AddGroup(id string) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	id = strings.ToLower(id)
	if _, there := l.groups[id].latest(); !there && id != "" {
		l.attachable = append(l.attachable, id)
		keep(l.groups, id, group{ID: id, Engine: "redis", Status: active, Users: []string{defaultUser}, Tags: map[string]string{}}, true)
	}
}

func groupNotFound(id string) error {
	made := refuse("UserGroupNotFound", "User group "+id+" not found.")
	made.Status = 404
	return made
}

// groupOutput is a group in a response.
type groupOutput struct {
	UserGroupID                          string `xml:"UserGroupId"`
	Status, Engine, MinimumEngineVersion string
	UserIDs                              members[string] `xml:"UserIds"`
	ReplicationGroups                    members[string]
	PendingChanges                       *pending `xml:",omitempty"`
	ARN                                  string
}

type pending struct {
	UserIDsToAdd    members[string] `xml:"UserIdsToAdd"`
	UserIDsToRemove members[string] `xml:"UserIdsToRemove"`
}

func (l *Lab) groupOutput(g group) groupOutput {
	made := groupOutput{
		UserGroupID: g.ID, Status: g.Status, Engine: g.Engine, MinimumEngineVersion: "6.0", UserIDs: members[string]{g.Users},
		ReplicationGroups: members[string]{l.attached(g)},
		ARN:               l.arn("elasticache", "usergroup:"+g.ID),
	}
	if len(g.Adding)+len(g.Removing) > 0 {
		made.PendingChanges = &pending{members[string]{g.Adding}, members[string]{g.Removing}}
	}
	return made
}

// attached returns the caches that a group is attached to: the only cache for the oldest group that is not detached, else none.
func (l *Lab) attached(g group) []string {
	for _, id := range l.attachable {
		if _, there := l.groups[id].latest(); there && !slices.Contains(l.options.Detached, id) {
			if id == g.ID {
				return []string{"lab"}
			}
			break
		}
	}
	return nil
}

func (l *Lab) createGroup(c queryCall) (any, error) {
	id := strings.ToLower(c.form.Get("UserGroupId"))
	if _, there := l.groups[id].latest(); there {
		return nil, refuse("UserGroupAlreadyExists", "User group "+id+" already exists.")
	}
	if id == "" {
		return nil, refuse(codeBadValue, "The parameter UserGroupId must be provided.")
	}
	made := group{ID: id, Engine: cmp.Or(strings.ToLower(c.form.Get("Engine")), "redis"), Status: creating, Tags: c.tags()}
	ids := c.ids("UserIds")
	if err := l.checkMembers(ids, ids); err != nil {
		return nil, err
	}
	made.Adding = ids
	l.attachable = append(l.attachable, id)
	keep(l.groups, id, made, true)
	l.after(l.options.Groups.Create, func() { l.regrouped(id) })
	return l.groupOutput(l.group(id)), nil
}

func (l *Lab) group(id string) group {
	found, _ := l.groups[id].latest()
	return found
}

// checkMembers checks the members of a group, given all members and the added ones. That an added user must be active is a guess, and so
// is the error code for too many users.
func (l *Lab) checkMembers(all, added []string) error {
	for _, id := range added {
		found, there := l.users[id].latest()
		if !there {
			return userNotFound(id)
		}
		if found.Status != active {
			return refuse(codeBadValue, "User "+id+" is not in active state: "+found.Status+".")
		}
	}
	names := map[string]bool{}
	for _, id := range all {
		name := l.now(id).Name
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
	found, there := l.groups[id].latest()
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
	return l.groupOutput(l.group(id)), nil
}

func merged(users, add, remove []string) []string {
	all := slices.Concat(users, add)
	return slices.DeleteFunc(all, func(id string) bool { return slices.Contains(remove, id) })
}

// regroup starts a change of a group's members.
func (l *Lab) regroup(g group, add, remove []string) {
	g.Status, g.Adding, g.Removing = modifying, add, remove
	keep(l.groups, g.ID, g, true)
	l.after(l.options.Groups.Modify, func() { l.regrouped(g.ID) })
}

// regrouped completes a change of a group's members. If Redis does not accept it, the group stays modifying and the change is retried.
func (l *Lab) regrouped(id string) {
	before := l.group(id)
	next := before
	next.Users, next.Adding, next.Removing, next.Status = merged(before.Users, before.Adding, before.Removing), nil, nil, active
	keep(l.groups, id, next, true)
	for _, changed := range slices.Concat(before.Adding, before.Removing) {
		if err := l.project(l.now(changed)); err != nil {
			keep(l.groups, id, before, true)
			l.after(retryProjection, func() { l.regrouped(id) })
			return
		}
	}
}

func (l *Lab) deleteGroup(c queryCall) (any, error) {
	id := strings.ToLower(c.form.Get("UserGroupId"))
	found, there := l.groups[id].latest()
	switch {
	case !there:
		return nil, groupNotFound(id)
	case found.Status != active:
		return nil, refuse("InvalidUserGroupState", "User group "+id+" is not in active state: "+found.Status+".")
	}
	found.Status = deleting
	keep(l.groups, id, found, true)
	l.after(l.options.Groups.Delete, func() { l.disband(found) })
	return l.groupOutput(found), nil
}

func (l *Lab) disband(gone group) {
	keep(l.groups, gone.ID, gone, false)
	for _, id := range gone.Users {
		if err := l.project(l.now(id)); err != nil {
			keep(l.groups, gone.ID, gone, true)
			l.after(retryProjection, func() { l.disband(gone) })
			return
		}
	}
}

func (l *Lab) describeGroups(c queryCall) (any, error) {
	found, marker, err := described(l, c, l.groups, "UserGroupId", l.groupOutput)
	return struct {
		UserGroups members[groupOutput]
		Marker     string `xml:",omitempty"`
	}{members[groupOutput]{found}, marker}, err
}
