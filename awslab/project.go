package awslab

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// How long Redis may take, and how long to wait before it is tried again.
const (
	projectionTimeout = 5 * time.Second
	retryProjection   = 200 * time.Millisecond
)

// Restore writes all users that may log in onto the Redis again, as AWS does with a node that it replaces. A Redis that has lost its memory
// needs it.
func (l *Lab) Restore() error {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	for _, id := range l.present() {
		if err := l.project(l.now(id)); err != nil {
			return err
		}
	}
	return nil
}

// project makes a user what it is in Redis, as far as it is in a group, or is not there.
func (l *Lab) project(u user) error {
	if l.options.Cache == nil || u.Name == defaultUser || u.Status == creating || u.Status == deleting {
		return nil
	}
	if !l.member(u.ID) {
		return l.withdraw(u)
	}
	rules := []any{"ACL", "SETUSER", u.Name, "reset"}
	for part := range strings.FieldsSeq(u.Access) {
		rules = append(rules, part)
	}
	for _, password := range u.Passwords {
		rules = append(rules, "#"+password)
	}
	if u.Mode == noPassword {
		rules = append(rules, "nopass")
	}
	return l.tell(rules...)
}

// member tells whether a user is in a group by now.
func (l *Lab) member(id string) bool {
	for _, g := range l.memberships(id) {
		if g.Status != deleting && len(l.attached(g)) > 0 && slices.Contains(g.Users, id) {
			return true
		}
	}
	return false
}

// withdraw takes a user from Redis, which ends its connections.
func (l *Lab) withdraw(u user) error {
	if l.options.Cache == nil || u.Name == defaultUser {
		return nil
	}
	return l.tell("ACL", "DELUSER", u.Name)
}

func (l *Lab) tell(command ...any) error {
	ctx, cancel := context.WithTimeout(context.Background(), projectionTimeout)
	defer cancel()
	if err := l.options.Cache.Do(ctx, command...).Err(); err != nil {
		return fmt.Errorf("write the user %v onto Redis: %w", command[2], err)
	}
	return nil
}
