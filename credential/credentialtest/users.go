package credentialtest

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/einmal-operators/einmal/credential"
)

// Users are the users of a system in memory, such as those of a database: a fake for tests of code that makes, rotates and removes
// credentials. They outlive the processes of an operator, each of which sees them through a Session. A test looks at them here: who is
// let in, what was written, and whether anybody was locked out meanwhile.
//
// They have no clock but time.Now, so that they live in virtual time, in einmaltest or testing/synctest, as well as in real time. The zero
// value has no users, each of which can have one password. All methods may be called at the same time.
type Users struct {
	// Name is what effects and Broken call the system, where a test has several. The default is "": they name the user alone.
	Name string
	// Room is how many passwords a user can have at the same time: 1, as in PostgreSQL, or 2, as in Redis. The default, for 0, is 1.
	Room int

	mu       sync.Mutex
	accounts map[string]*account
	// had are the passwords that users were given, also those who are gone.
	had           map[string][]credential.Password
	promises      []promise
	broken        []string
	writes, tried int
}

// account is what there is of a user.
type account struct {
	owner     credential.Owner
	passwords []credential.Password
	grants    string
	retired   bool
	// given names the record that it was given last; zero if no record was kept, as with a planted user.
	given credential.Given
}

func (a *account) accepts(password credential.Password) bool {
	return a != nil && !a.retired && slices.Contains(a.passwords, password)
}

// promise is that a user is let in with a password until a time.
type promise struct {
	username string
	password credential.Password
	until    time.Time
}

// Plant puts a user there, or another in its place, as if somebody else had done so: for an owner, or unmarked for the zero Owner, with
// these passwords. It is no write, and nothing that the user had.
func (u *Users) Plant(username string, owner credential.Owner, passwords ...credential.Password) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.put(username, &account{owner: owner, passwords: passwords})
}

// ChangePassword gives a user that is there another password in place of all that it has, as a person does: it stays the owner's, and keeps which
// record it was given. It is no write.
func (u *Users) ChangePassword(username string, password credential.Password) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if known := u.accounts[username]; known != nil {
		known.passwords = []credential.Password{password}
	}
}

// Disable takes the right to log in from a user that is there, as a person does. It is no write.
func (u *Users) Disable(username string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if known := u.accounts[username]; known != nil {
		known.retired = true
	}
}

// ForgetGiven makes the system forget which record a user was given, as with users that earlier releases made. It is no write.
func (u *Users) ForgetGiven(username string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if known := u.accounts[username]; known != nil {
		known.given = credential.Given{}
	}
}

func (u *Users) put(username string, made *account) {
	if u.accounts == nil {
		u.accounts, u.had = map[string]*account{}, map[string][]credential.Password{}
	}
	u.accounts[username] = made
}

// Lose takes a user away, as a cache does that starts again without its users. It is no write, and breaks no promise until the next one.
func (u *Users) Lose(username string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.accounts, username)
}

// Accepts tells whether somebody is let in with a credential now. It looks at the username and the password alone, and does not count
// as a try.
func (u *Users) Accepts(record credential.Record) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.accounts[record.Username].accepts(record.Password)
}

// Promise expects that a credential is accepted after each write from now on that comes before a time. A second promise of the same takes
// the place of the first. See Broken.
func (u *Users) Promise(record credential.Record, until time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	made := promise{record.Username, record.Password, until}
	u.promises = append(slices.DeleteFunc(u.promises, func(old promise) bool {
		return old.username == made.username && old.password == made.password
	}), made)
}

// Broken tells of each write after which a credential was not accepted although that was promised, one line each: what was written, and who
// was locked out. It holds no password, and is empty where all is well.
func (u *Users) Broken() []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.Clone(u.broken)
}

// Had are the passwords that a user was given by Create and Set, in order, also when it has lost them, or is gone. One that was given
// again is there again.
func (u *Users) Had(username string) []credential.Password {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.Clone(u.had[username])
}

// Granted is what a user has beside its credential: the Grants of a Session. It is "" if there is no such user.
func (u *Users) Granted(username string) string {
	u.mu.Lock()
	defer u.mu.Unlock()
	if known := u.accounts[username]; known != nil {
		return known.grants
	}
	return ""
}

// Names are the users that there are, also those that may not log in, in alphabetical order.
func (u *Users) Names() []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.Sorted(maps.Keys(u.accounts))
}

// Writes is how many writes have arrived so far, also those that were refused.
func (u *Users) Writes() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.writes
}

// Tried is how often Observe has tried a password so far.
func (u *Users) Tried() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.tried
}

// called is a user, as effects and Broken call it.
func (u *Users) called(username string) string {
	if u.Name == "" {
		return username
	}
	return u.Name + " " + username
}

// write makes a change, and looks whether those who were promised it are let in then.
func (u *Users) write(name string, change func() error) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.writes++
	if err := change(); err != nil {
		return err
	}
	for _, made := range u.promises {
		if time.Now().Before(made.until) && !u.accounts[made.username].accepts(made.password) {
			u.broken = append(u.broken, name+" locks out "+u.called(made.username))
		}
	}
	return nil
}

// state is what an owner sees of a user.
func (u *Users) state(owner credential.Owner, username string, password credential.Password) credential.State {
	known := u.accounts[username]
	switch {
	case known == nil:
		return credential.Absent
	case known.owner == credential.Owner{}:
		return credential.Unmarked
	case known.owner != owner:
		return credential.Foreign
	case known.retired:
		return credential.Retired
	case password.IsZero():
		return credential.Present
	}
	if u.tried++; known.accepts(password) {
		return credential.Accepted
	}
	return credential.Refused
}

// give gives a user that is there a password.
func (u *Users) give(owner credential.Owner, change credential.Assignment) error {
	known := u.accounts[change.Username]
	switch {
	case known == nil:
		return errors.New("there is no such user")
	case known.owner != owner && known.owner != credential.Owner{}:
		return credential.ErrConflict
	}
	var passwords []credential.Password
	if change.Keep && u.Room > 1 {
		passwords = slices.Clone(known.passwords)
	}
	if !slices.Contains(passwords, change.Password) {
		passwords = append(passwords, change.Password)
	}
	if room := max(u.Room, 1); len(passwords) > room {
		return fmt.Errorf("a user has no room for more passwords than %d", room)
	}
	known.owner, known.passwords, known.retired, known.given = owner, passwords, false, credential.GivenOf(change.Record)
	u.had[change.Username] = append(u.had[change.Username], change.Password)
	return nil
}

// active tells whether a user of the owner may log in.
func (u *Users) active(owner credential.Owner, username string) bool {
	known := u.accounts[username]
	return known != nil && known.owner == owner && !known.retired
}
