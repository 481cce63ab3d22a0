package awslab

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// The authentication modes of users.
const (
	byPassword = "password"
	noPassword = "no-password"
)

// The limits of users.
const (
	maxPasswords = 2
	minPassword  = 16
	maxPassword  = 128
	maxUserID    = 40
)

// user is a version of a user. Passwords are SHA-256 digests in hex.
type user struct {
	ID, Name, Access, Mode, Status string
	Passwords                      []string
}

func userNotFound(id string) error {
	return refuse(codeUserNotFound, "User "+id+" not found.")
}

// userOutput is a user in a response.
type userOutput struct {
	UserID                         string `xml:"UserId"`
	UserName, Status, AccessString string
	UserGroupIDs                   members[string] `xml:"UserGroupIds"`
	Authentication                 authentication
}

type authentication struct {
	Type          string
	PasswordCount int
}

func (l *Lab) userOutput(u user) userOutput {
	var in []string
	for _, g := range l.memberships(u.ID) {
		if slices.Contains(g.Users, u.ID) {
			in = append(in, g.ID)
		}
	}
	return userOutput{
		UserID: u.ID, UserName: u.Name, Status: u.Status, AccessString: normalize(u.Access),
		UserGroupIDs: members[string]{in}, Authentication: authentication{u.Mode, len(u.Passwords)},
	}
}

func (l *Lab) createUser(c queryCall) (any, error) {
	id := strings.ToLower(c.form.Get("UserId"))
	made := user{ID: id, Name: c.form.Get("UserName"), Status: creating}
	if err := checkUser(made, c.form.Get("Engine")); err != nil {
		return nil, err
	}
	if _, there := l.users[id]; there {
		return nil, refuse("UserAlreadyExists", "User "+id+" already exists.")
	}
	if err := c.change(&made); err != nil {
		return nil, err
	}
	switch {
	case made.Access == "":
		return nil, refuse(codeBadValue, "The parameter AccessString must be provided.")
	case made.Mode == "":
		return nil, refuse(codeCombination, "Input must have either Passwords, NoPasswordRequired or AuthenticationMode.")
	case len(l.users) >= l.options.MaxUsers:
		return nil, refuse("UserQuotaExceeded", "The quota of users has been exceeded.")
	}
	l.users[id] = made
	l.after(l.options.Users, func() { l.finish(made) })
	return l.userOutput(l.users[id]), nil
}

// checkUser checks the fields of a new user that cannot be modified later.
func checkUser(made user, engine string) error {
	switch {
	case !regexp.MustCompile(`^[a-z][a-z0-9-]*$`).MatchString(made.ID), len(made.ID) > maxUserID, strings.HasSuffix(made.ID, "-"), strings.Contains(made.ID, "--"):
		return refuse(codeBadValue, "The parameter UserId is not a valid identifier. Identifiers must begin with a letter; must contain only ASCII letters, "+
			"digits, and hyphens; must not end with a hyphen or contain two consecutive hyphens; and have at most 40 characters.")
	case made.Name == "" || strings.ContainsAny(made.Name, " \t\n"):
		return refuse(codeBadValue, "The parameter UserName must be provided, without spaces.")
	case engine != "redis" && engine != "valkey":
		return refuse(codeBadValue, "The parameter Engine must be redis or valkey.")
	}
	return nil
}

// change applies the access string and the passwords of a call to a user.
func (c queryCall) change(u *user) error {
	if access := c.form.Get("AccessString"); access != "" {
		u.Access = access
	}
	mode := c.form.Get("AuthenticationMode.Type")
	if c.form.Get("NoPasswordRequired") == "true" {
		mode = noPassword
	}
	passwords := append(c.list("AuthenticationMode.Passwords.member"), c.list("Passwords.member")...)
	if mode == "" && len(passwords) > 0 {
		mode = byPassword
	}
	if err := checkPasswords(mode, passwords); err != nil {
		return err
	}
	if mode != "" {
		u.Mode, u.Passwords = mode, nil
		for _, password := range passwords {
			u.Passwords = append(u.Passwords, digest(password))
		}
	}
	return checkAccess(u.Access)
}

func checkPasswords(mode string, passwords []string) error {
	if mode == "" || mode == noPassword {
		return nil
	}
	if len(passwords) == 0 || len(passwords) > maxPasswords {
		return refuse(codeBadValue, fmt.Sprintf("A user must have one or %d passwords.", maxPasswords))
	}
	for _, password := range passwords {
		if len(password) < minPassword || len(password) > maxPassword {
			return refuse(codeBadValue, fmt.Sprintf("Passwords length must be between %d-%d characters.", minPassword, maxPassword))
		}
	}
	return nil
}

func digest(password string) string {
	sum := sha256.Sum256([]byte(password))
	return hex.EncodeToString(sum[:])
}

func (l *Lab) modifyUser(c queryCall) (any, error) {
	found, err := l.settled(c)
	if err != nil {
		return nil, err
	}
	next := found
	if err := c.change(&next); err != nil {
		return nil, err
	}
	found.Status = modifying
	l.users[found.ID] = found
	l.after(l.options.Users, func() { l.finish(next) })
	return l.userOutput(l.users[found.ID]), nil
}

// settled returns the user that a call modifies. It must be active.
func (l *Lab) settled(c queryCall) (user, error) {
	id := strings.ToLower(c.form.Get("UserId"))
	found, there := l.users[id]
	switch {
	case !there:
		return user{}, userNotFound(id)
	case found.Status != active:
		return user{}, refuse(codeUserState, "User "+id+" is not in active state: "+found.Status+".")
	}
	return found, nil
}

// finish completes a change of a user. If Redis does not accept it, the user stays in its state and the change is retried.
func (l *Lab) finish(next user) {
	next.Status = active
	if err := l.project(next); err != nil {
		l.after(retryProjection, func() { l.finish(next) })
		return
	}
	l.users[next.ID] = next
}

// deleteUser deletes a user and removes it from its groups, which are modifying meanwhile.
func (l *Lab) deleteUser(c queryCall) (any, error) {
	found, err := l.settled(c)
	if err != nil {
		return nil, err
	}
	in := l.memberships(found.ID)
	if found.Name == defaultUser && (found.ID == defaultUser || len(in) > 0) {
		return nil, refuse("DefaultUserAssociatedToUserGroup", "Default user associated to user group cannot be deleted.")
	}
	for _, g := range in {
		if g.Status != active {
			return nil, refuse(codeUserState, "The group "+g.ID+" of the user "+found.ID+" is not active.")
		}
	}
	found.Status = deleting
	l.users[found.ID] = found
	answer := l.userOutput(found)
	for _, g := range in {
		l.regroup(g, nil, []string{found.ID})
	}
	l.after(l.options.Users, func() { l.vanish(found) })
	return answer, nil
}

func (l *Lab) vanish(gone user) {
	if err := l.withdraw(gone); err != nil {
		l.after(retryProjection, func() { l.vanish(gone) })
		return
	}
	delete(l.users, gone.ID)
}

// memberships returns the groups that contain a user or to which it is being added.
func (l *Lab) memberships(id string) []group {
	var found []group
	for _, name := range slices.Sorted(maps.Keys(l.groups)) {
		if g := l.groups[name]; slices.Contains(g.Users, id) || slices.Contains(g.Adding, id) {
			found = append(found, g)
		}
	}
	return found
}

func (l *Lab) describeUsers(c queryCall) (any, error) {
	found, marker, err := described(c, l.users, "UserId", userNotFound, l.userOutput)
	return struct {
		Users  members[userOutput]
		Marker string `xml:",omitempty"`
	}{members[userOutput]{found}, marker}, err
}
