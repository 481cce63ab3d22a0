package awslab

import (
	"cmp"
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
	byIAM      = "iam"
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
	ID, Name, Engine, Access, Mode string
	Passwords                      []string
	Status                         string
	Tags                           map[string]string
}

func (l *Lab) keepUser(u user) {
	if u.Tags == nil {
		u.Tags = map[string]string{}
	}
	keep(l.users, u.ID, u, true)
}

func userNotFound(id string) error {
	made := refuse(codeUserNotFound, "User "+id+" not found.")
	made.Status = 404
	return made
}

// userOutput is a user in a response.
type userOutput struct {
	UserID                                         string `xml:"UserId"`
	UserName, Status, Engine, MinimumEngineVersion string
	AccessString                                   string
	UserGroupIDs                                   members[string] `xml:"UserGroupIds"`
	Authentication                                 authentication
	ARN                                            string
}

type authentication struct {
	Type          string
	PasswordCount int
}

func (l *Lab) userOutput(u user) userOutput {
	return userOutput{
		UserID: u.ID, UserName: u.Name, Status: u.Status, Engine: u.Engine, MinimumEngineVersion: "6.0", AccessString: normalize(u.Access),
		UserGroupIDs: members[string]{l.groupsOf(u.ID)}, Authentication: authentication{u.Mode, len(u.Passwords)}, ARN: l.arn("elasticache", "user:"+u.ID),
	}
}

// groupsOf returns the groups that contain a user, as lagging reads see them.
func (l *Lab) groupsOf(id string) []string {
	var found []string
	for name, all := range l.groups {
		if g, there := all.asOf(l.options.ReadLag); there && slices.Contains(g.Users, id) {
			found = append(found, name)
		}
	}
	slices.Sort(found)
	return found
}

func (l *Lab) createUser(c queryCall) (any, error) {
	id := strings.ToLower(c.form.Get("UserId"))
	made := user{ID: id, Name: c.form.Get("UserName"), Engine: strings.ToLower(c.form.Get("Engine")), Status: creating, Tags: c.tags()}
	if err := checkUser(made); err != nil {
		return nil, err
	}
	if _, there := l.users[id].latest(); there {
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
	case len(l.present()) >= l.options.MaxUsers:
		return nil, refuse("UserQuotaExceeded", "The quota of users has been exceeded.")
	}
	l.keepUser(made)
	l.after(l.options.Users.Create, func() { l.finish(made) })
	return l.userOutput(l.now(id)), nil
}

// checkUser checks the fields of a new user that cannot be modified later.
func checkUser(made user) error {
	switch {
	case !regexp.MustCompile(`^[a-z][a-z0-9-]*$`).MatchString(made.ID), len(made.ID) > maxUserID, strings.HasSuffix(made.ID, "-"), strings.Contains(made.ID, "--"):
		return refuse(codeBadValue, "The parameter UserId is not a valid identifier. Identifiers must begin with a letter; must contain only ASCII letters, "+
			"digits, and hyphens; must not end with a hyphen or contain two consecutive hyphens; and have at most 40 characters.")
	case made.Name == "" || strings.ContainsAny(made.Name, " \t\n"):
		return refuse(codeBadValue, "The parameter UserName must be provided, without spaces.")
	case made.Engine != "redis" && made.Engine != "valkey":
		return refuse(codeBadValue, "The parameter Engine must be redis or valkey.")
	}
	return nil
}

// change applies the access string and the passwords of a call to a user.
func (c queryCall) change(u *user) error {
	if access := c.form.Get("AccessString"); access != "" {
		u.Access = access
	}
	u.Access = strings.TrimSpace(u.Access + " " + c.form.Get("AppendAccessString"))
	mode := cmp.Or(c.form.Get("AuthenticationMode.Type"), map[bool]string{true: noPassword}[c.form.Get("NoPasswordRequired") == "true"])
	if mode == "no-password-required" {
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
	switch mode {
	case "":
		return nil
	case noPassword, byIAM:
		if len(passwords) > 0 {
			return refuse(codeCombination, "Passwords cannot be used with the authentication mode "+mode+".")
		}
		return nil
	case byPassword:
	default:
		return refuse(codeBadValue, "The authentication mode must be password, no-password-required or iam.")
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
	next.Engine = cmp.Or(strings.ToLower(c.form.Get("Engine")), next.Engine)
	if err := c.change(&next); err != nil {
		return nil, err
	}
	found.Status = modifying
	l.keepUser(found)
	l.after(l.options.Users.Modify, func() { l.finish(next) })
	return l.userOutput(l.now(found.ID)), nil
}

// settled returns the user that a call modifies. It must be active.
func (l *Lab) settled(c queryCall) (user, error) {
	id := strings.ToLower(c.form.Get("UserId"))
	found, there := l.users[id].latest()
	switch {
	case !there:
		return user{}, userNotFound(id)
	case found.Status != active:
		return user{}, refuse(codeUserState, "User "+id+" is not in active state: "+found.Status+".")
	}
	return found, nil
}

func (l *Lab) now(id string) user {
	found, _ := l.users[id].latest()
	return found
}

// finish completes a change of a user. If Redis does not accept it, the user stays in its state and the change is retried.
func (l *Lab) finish(next user) {
	next.Tags = l.now(next.ID).Tags // They may have changed in the meantime.
	next.Status = active
	if err := l.project(next); err != nil {
		l.after(retryProjection, func() { l.finish(next) })
		return
	}
	l.keepUser(next)
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
	l.keepUser(found)
	answer := l.userOutput(found)
	for _, g := range in {
		l.regroup(g, nil, []string{found.ID})
	}
	l.after(l.options.Users.Delete, func() { l.vanish(found) })
	return answer, nil
}

func (l *Lab) vanish(gone user) {
	if err := l.withdraw(gone); err != nil {
		l.after(retryProjection, func() { l.vanish(gone) })
		return
	}
	keep(l.users, gone.ID, gone, false)
}

// memberships returns the groups that contain a user or to which it is being added.
func (l *Lab) memberships(id string) []group {
	var found []group
	for _, name := range slices.Sorted(maps.Keys(l.groups)) {
		if g, there := l.groups[name].latest(); there && (slices.Contains(g.Users, id) || slices.Contains(g.Adding, id)) {
			found = append(found, g)
		}
	}
	return found
}

// present returns the IDs of all users.
func (l *Lab) present() []string {
	var found []string
	for id, all := range l.users {
		if _, there := all.latest(); there {
			found = append(found, id)
		}
	}
	return found
}

func (l *Lab) describeUsers(c queryCall) (any, error) {
	found, marker, err := described(l, c, l.users, "UserId", l.userOutput)
	return struct {
		Users  members[userOutput]
		Marker string `xml:",omitempty"`
	}{members[userOutput]{found}, marker}, err
}
