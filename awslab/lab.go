package awslab

import (
	"cmp"
	"encoding/json"
	"net/http"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/redis/go-redis/v9"
)

// The defaults of Options, and the maximum size of a page.
const (
	defaultUsers      = 1000
	defaultGroupUsers = 100
	defaultParameters = 10_000
	maxPage           = 100
)

// Options configure a Lab. With the zero value, all changes are effective immediately and nothing fails.
type Options struct {
	// Users and Groups set how long users and user groups stay in the states creating, modifying and deleting. With zero, a change is
	// effective before the response.
	Users, Groups time.Duration
	// RecreateAfter is how long the name of a deleted parameter stays reserved: reads do not find the parameter, and creating it fails with
	// ParameterAlreadyExists. AWS recommends to wait 30 s; the behaviour before that is a guess.
	RecreateAfter time.Duration
	// MaxUsers is the maximum number of users. The default is 1000. MaxGroupUsers is the maximum number of users in a group. The default
	// is 100.
	MaxUsers, MaxGroupUsers int
	// MaxParameters is the maximum number of parameters in the standard tier. The default is 10,000.
	MaxParameters int
	// Cache is the Redis to which users are written when they are active and in a group. The user "default" is never written. If Cache is
	// nil, nothing is written. The client must not log in as a user of the Lab.
	Cache redis.UniversalClient
	// Detached lists IDs of groups that are not attached to the cache, so that their users cannot log in. Of the other groups, the one
	// created first is attached, because a cache of AWS has one group.
	Detached []string
}

// Lab emulates an AWS account in one region. It is an http.Handler and safe for concurrent use. Create it with New.
type Lab struct {
	mutex      sync.Mutex
	options    Options
	parameters map[string][]parameter // all versions
	deleted    map[string]time.Time   // deletion times of parameters
	users      map[string]user
	groups     map[string]group
	attachable []string // IDs of groups in order of creation
	faults     []planned
	refuses    bool
	journal    []Call
	timers     map[*time.Timer]bool
	closed     bool
}

// New returns a Lab with one user, "default", like every AWS account.
func New(options Options) *Lab {
	options.MaxUsers = cmp.Or(options.MaxUsers, defaultUsers)
	options.MaxGroupUsers = cmp.Or(options.MaxGroupUsers, defaultGroupUsers)
	options.MaxParameters = cmp.Or(options.MaxParameters, defaultParameters)
	return &Lab{
		options: options, parameters: map[string][]parameter{}, deleted: map[string]time.Time{}, groups: map[string]group{}, timers: map[*time.Timer]bool{},
		users: map[string]user{defaultUser: {ID: defaultUser, Name: defaultUser, Access: "on ~* &* +@all", Mode: noPassword, Status: active}},
	}
}

// Config returns an SDK configuration for a Lab that is served at a URL.
func Config(url string) aws.Config {
	return aws.Config{
		Region: "eu-central-1", BaseEndpoint: &url,
		Credentials: aws.NewCredentialsCache(credentials.NewStaticCredentialsProvider("lab", "lab", "")),
	}
}

// Adjust changes the options. Changes that are already settling keep their duration.
func (l *Lab) Adjust(change func(*Options)) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	change(&l.options)
}

// Close stops all pending state transitions. Resources stay in their current state.
func (l *Lab) Close() {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.closed = true
	for timer := range l.timers {
		timer.Stop()
	}
	clear(l.timers)
}

// after calls do after the wait, with the mutex held. If the wait is zero, it calls do immediately; the caller holds the mutex.
func (l *Lab) after(wait time.Duration, do func()) {
	if wait <= 0 {
		do()
		return
	}
	if l.closed {
		return
	}
	var timer *time.Timer
	timer = time.AfterFunc(wait, func() {
		l.mutex.Lock()
		defer l.mutex.Unlock()
		if l.timers[timer] {
			delete(l.timers, timer)
			do()
		}
	})
	l.timers[timer] = true
}

// ServeHTTP handles a call of either service. For GET it returns the journal in JSON, one call per line.
func (l *Lab) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		for _, made := range l.Journal() {
			_ = json.NewEncoder(w).Encode(made) //nolint:errchkjson // the client may have disconnected
		}
		return
	}
	asked, err := readCall(w, r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	answer, err, cut := l.handle(asked)
	if cut {
		hangUp(w)
		return
	}
	asked.write(w, answer, err)
}

// handle performs a call or applies the fault that is planned for it. cut reports whether to close the connection instead of responding.
func (l *Lab) handle(asked call) (answer any, err error, cut bool) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	fault, wrong := l.next(asked)
	switch {
	case l.refuses:
		l.note(asked, CodeRefused)
		return nil, nil, true
	case wrong && !fault.Lost:
		l.note(asked, fault.Code)
		return nil, refuse(fault.Code, fault.Message), false
	}
	answer, err = asked.do(l)
	l.note(asked, codeOf(err))
	return answer, err, wrong && fault.Lost
}
