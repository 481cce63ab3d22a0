package awslab

import (
	"cmp"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/redis/go-redis/v9"
)

// What the services allow, where Options say nothing else.
const (
	defaultUsers      = 1000
	defaultGroupUsers = 100
	defaultParameters = 10_000
	defaultAccount    = "123456789012"
	defaultRegion     = "eu-central-1"
	maxPage           = 100
)

// Settle is how long changes of a kind take until they are in force.
type Settle struct {
	Create, Modify, Delete time.Duration
}

// Options are what a Lab does. The zero value is an AWS where all is at once, and nothing fails.
type Options struct {
	// Users and Groups are how long users are creating, modifying and deleting, and user groups likewise. With zero a change is in force
	// before it is answered.
	Users, Groups Settle
	// ReadLag is for how long reads do not see a write. Writes always see all of them.
	ReadLag time.Duration
	// RecreateAfter is for how long a deleted parameter's name is taken: it is not found, and to create it is ParameterAlreadyExists.
	// AWS asks to wait 30 s; what it does before is a guess.
	RecreateAfter time.Duration
	// MaxUsers is how many users there may be, 1000 if zero. MaxGroupUsers is how many may be in a group, 100 if zero.
	MaxUsers, MaxGroupUsers int
	// MaxParameters is how many parameters of the standard tier there may be, 10,000 if zero.
	MaxParameters int
	// Cache is the Redis onto which users are written when they are active and in a group. The user "default" never is. Without it
	// nothing is written anywhere. Its logins must not be those of users of the Lab.
	Cache redis.UniversalClient
	// Detached are ids of groups that are attached to no cache, so that their users cannot log in. Of the others one is attached to the cache,
	// the first one that is made: AWS takes one group for a cache.
	Detached []string
	// Account and Region are those in ARNs; 123456789012 and eu-central-1 if empty.
	Account, Region string
}

// Lab is an account with one region, an http.Handler. Its methods may be called at the same time. Make it with New.
type Lab struct {
	mutex      sync.Mutex
	options    Options
	parameters map[string]*history[parameter]
	deleted    map[string]time.Time // parameters, and when
	users      map[string]*history[user]
	groups     map[string]*history[group]
	attachable []string // ids of groups, in the order in which they were made
	faults     []planned
	refuses    bool
	journal    []Call
	timers     map[*time.Timer]bool
	closed     bool
}

// New makes a Lab. It has one user, "default", as each AWS account does.
func New(options Options) *Lab {
	options.MaxUsers = cmp.Or(options.MaxUsers, defaultUsers)
	options.MaxGroupUsers = cmp.Or(options.MaxGroupUsers, defaultGroupUsers)
	options.MaxParameters = cmp.Or(options.MaxParameters, defaultParameters)
	options.Account = cmp.Or(options.Account, defaultAccount)
	options.Region = cmp.Or(options.Region, defaultRegion)
	l := &Lab{
		options: options, parameters: map[string]*history[parameter]{}, deleted: map[string]time.Time{},
		users: map[string]*history[user]{}, groups: map[string]*history[group]{}, timers: map[*time.Timer]bool{},
	}
	l.keepUser(user{ID: defaultUser, Name: defaultUser, Engine: "redis", Access: "on ~* &* +@all", Mode: noPassword, Status: active})
	return l
}

// Config makes the SDK call a Lab that is served at a URL.
func Config(url string) aws.Config {
	return aws.Config{
		Region: defaultRegion, BaseEndpoint: &url,
		Credentials: aws.NewCredentialsCache(credentials.NewStaticCredentialsProvider("lab", "lab", "")),
	}
}

// Adjust changes what the Lab does from now on. What has begun to settle takes the time that it took when it began.
func (l *Lab) Adjust(change func(*Options)) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	change(&l.options)
}

// Close ends what is settling, where it is.
func (l *Lab) Close() {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.closed = true
	for timer := range l.timers {
		timer.Stop()
	}
	clear(l.timers)
}

// after does something when the time is over, with the mutex held; at once if there is none.
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

// arn names a resource as AWS does.
func (l *Lab) arn(service, resource string) string {
	return "arn:aws:" + strings.Join([]string{service, l.options.Region, l.options.Account, resource}, ":")
}

// ServeHTTP answers a call of either service. To GET it answers with the journal, in JSON, a call a line.
func (l *Lab) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		for _, made := range l.Journal() {
			_ = json.NewEncoder(w).Encode(made) //nolint:errchkjson // a client that has gone away hears nothing
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

// handle does what is asked, or what is planned to go wrong with it. It tells whether the connection is cut instead of an answer.
func (l *Lab) handle(asked call) (answer any, err error, cut bool) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	fault, wrong := l.next(asked)
	switch {
	case l.refuses || wrong && fault.Refused:
		l.note(asked, CodeRefused)
		return nil, nil, true
	case wrong && !fault.Lost:
		l.note(asked, fault.Code)
		return nil, fault.failure(), false
	}
	answer, err = asked.do(l)
	l.note(asked, codeOf(err))
	return answer, err, wrong && fault.Lost
}
