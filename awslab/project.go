package awslab

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// projectionTimeout is the timeout of a write to Redis, retryProjection the time before a retry.
const (
	projectionTimeout = 5 * time.Second
	retryProjection   = 200 * time.Millisecond
)

// Restore writes all users that may log in to Redis again, as AWS does after replacing a node. Call it after Redis has lost its data.
func (l *Lab) Restore() error {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	for _, u := range l.users {
		if err := l.project(u); err != nil {
			return err
		}
	}
	return nil
}

// project writes a user to Redis if it is in an attached group, and deletes it from Redis otherwise.
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
	return l.execute(rules...)
}

// member reports whether a user is in an attached group.
func (l *Lab) member(id string) bool {
	for _, g := range l.memberships(id) {
		if len(l.attached(g)) > 0 && slices.Contains(g.Users, id) {
			return true
		}
	}
	return false
}

// withdraw deletes a user from Redis, which closes its connections.
func (l *Lab) withdraw(u user) error {
	if l.options.Cache == nil || u.Name == defaultUser {
		return nil
	}
	return l.execute("ACL", "DELUSER", u.Name)
}

// execute runs an ACL command of Redis whose third argument is a user name.
func (l *Lab) execute(command ...any) error {
	ctx, cancel := context.WithTimeout(context.Background(), projectionTimeout)
	defer cancel()
	if err := l.options.Cache.Do(ctx, command...).Err(); err != nil {
		return fmt.Errorf("write user %v to Redis: %w", command[2], err)
	}
	return nil
}
