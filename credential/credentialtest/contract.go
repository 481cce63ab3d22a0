// Package credentialtest contains tests and fakes for package credential. Contract tests an implementation of credential.Store. Users is a
// credential.System in memory, with fault injection.
package credentialtest

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal-operators/einmal/credential"
)

// Subject is a store under test. All fields are required.
type Subject struct {
	// Store is the store under test.
	Store credential.Store
	// Name is the name under which the tests of this Subject keep credentials. It must not exist in the Store yet.
	Name string
	// Spoil overwrites a generation of Name, or the copy for readers if generation is 0, with a value that has the owner's mark and is not a
	// credential.
	Spoil func(t *testing.T, generation int, owner credential.Owner)
}

// Contract runs the tests that every credential.Store must pass. It runs them in parallel, and calls subject once for each of them.
func Contract(t *testing.T, subject func(t *testing.T) Subject) {
	t.Helper()
	for name, test := range map[string]func(t *testing.T, s Subject){
		"a record is created once":                     createdOnce,
		"a race of creations has one winner":           race,
		"concurrent publications all succeed":          racePublishing,
		"another owner changes nothing":                others,
		"what is spoiled is neither used nor replaced": spoiled,
		"generations are read up to the last":          generations,
		"the copy for readers is overwritten":          published,
		"a check of a publication writes nothing":      checked,
		"the copy for readers never goes backwards":    neverBackwards,
		"what was lost behind the copy is noticed":     lostBehindTheCopy,
		"deleting removes all, and what is not there":  deletion,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, subject(t))
		})
	}
}

// secretPart is in each password of the tests, so that errors can be searched for it.
const secretPart = "s3cretPart"

func owner() credential.Owner {
	return credential.Owner{Operator: "contract.einmal.dev", Namespace: "team", Name: "app"}
}

func stranger() credential.Owner {
	return credential.Owner{Operator: "contract.einmal.dev", Namespace: "team", Name: "other"}
}

// record returns a record of a generation, each with another kind of overlap.
func record(generation int) credential.Record {
	overlaps := []time.Duration{0, credential.NoOverlap, 90 * time.Minute}
	return credential.Record{
		Username: "app", Password: credential.NewPassword(fmt.Sprintf("%s-of-generation-%d", secretPart, generation)), Generation: generation,
		Request: fmt.Sprintf("request-%d", generation), Created: time.Date(2026, 1, 2, 3, 4, generation, 0, time.UTC),
		Overlap: overlaps[generation%len(overlaps)],
	}
}

// says expects an error, and that it contains no password.
func says(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s says %v, want %v", what, err, want)
	}
	if err != nil && strings.Contains(err.Error(), secretPart) {
		t.Errorf("%s tells a password: %v", what, err)
	}
}

// has checks what the store reads from a generation on.
func (s Subject) has(t *testing.T, from, publishes int, want ...int) {
	t.Helper()
	found, err := s.Store.Read(t.Context(), s.Name, owner(), from)
	says(t, "read", err, nil)
	var got, expected []shown
	for _, one := range found.Records {
		got = append(got, shown{one, one.Password.Reveal()})
	}
	for _, generation := range want {
		expected = append(expected, shown{record(generation), record(generation).Password.Reveal()})
	}
	if diff := cmp.Diff(expected, got, cmp.Comparer(func(a, b shown) bool { return a == b })); diff != "" || found.Published != publishes {
		t.Errorf("it publishes %d, want %d; records (-want +got):\n%s", found.Published, publishes, diff)
	}
	if (publishes > 0) != (time.Since(found.Since).Abs() < time.Hour) {
		t.Errorf("readers get generation %d since %v", publishes, found.Since)
	}
}

// shown is a record whose password is visible in differences.
type shown struct {
	credential.Record

	password string
}

func (s Subject) create(t *testing.T, generation int) {
	t.Helper()
	says(t, fmt.Sprint("create generation ", generation), s.Store.Create(t.Context(), s.Name, owner(), record(generation)), nil)
}

func (s Subject) publish(t *testing.T, generation int) {
	t.Helper()
	says(t, fmt.Sprint("publish generation ", generation), s.Store.Publish(t.Context(), s.Name, owner(), record(generation)), nil)
}

func createdOnce(t *testing.T, s Subject) {
	s.has(t, 1, 0)
	s.create(t, 1)
	other := record(1)
	other.Password = credential.NewPassword(secretPart + "-of-another-writer")
	says(t, "create again", s.Store.Create(t.Context(), s.Name, owner(), other), credential.ErrExists)
	s.has(t, 1, 0, 1)
}

func race(t *testing.T, s Subject) {
	const racers = 8
	ends := make(chan error, racers)
	for range racers {
		go func() { ends <- s.Store.Create(t.Context(), s.Name, owner(), record(1)) }()
	}
	won := 0
	for range racers {
		if err := <-ends; err == nil {
			won++
		} else {
			says(t, "a loser", err, credential.ErrExists)
		}
	}
	if won != 1 {
		t.Errorf("%d have created it, want 1", won)
	}
	s.has(t, 1, 0, 1)
}

// racePublishing lets all losers of a race of creations continue with the record of the winner.
func racePublishing(t *testing.T, s Subject) {
	const racers = 8
	ends := make(chan error, racers)
	for generation := 1; generation <= 2; generation++ {
		s.create(t, generation)
		for range racers {
			go func() { ends <- s.Store.Publish(t.Context(), s.Name, owner(), record(generation)) }()
		}
		for range racers {
			says(t, fmt.Sprint("publish generation ", generation), <-ends, nil)
		}
	}
	s.has(t, 1, 2, 1, 2)
}

func others(t *testing.T, s Subject) {
	s.create(t, 1)
	s.publish(t, 1)
	_, err := s.Store.Read(t.Context(), s.Name, stranger(), 1)
	says(t, "read by another", err, credential.ErrConflict)
	says(t, "create by another", s.Store.Create(t.Context(), s.Name, stranger(), record(1)), credential.ErrExists)
	says(t, "publish by another", s.Store.Publish(t.Context(), s.Name, stranger(), record(2)), credential.ErrConflict)
	says(t, "delete by another", s.Store.Delete(t.Context(), s.Name, stranger()), credential.ErrConflict)
	s.has(t, 1, 1, 1)
}

func spoiled(t *testing.T, s Subject) {
	s.Spoil(t, 1, owner())
	_, err := s.Store.Read(t.Context(), s.Name, owner(), 1)
	says(t, "read", err, credential.ErrInvalid)
	says(t, "create", s.Store.Create(t.Context(), s.Name, owner(), record(1)), credential.ErrExists)
	_, err = s.Store.Read(t.Context(), s.Name, stranger(), 1)
	says(t, "read by another", err, credential.ErrConflict)
	says(t, "delete", s.Store.Delete(t.Context(), s.Name, owner()), nil)
	s.has(t, 1, 0)
}

func generations(t *testing.T, s Subject) {
	const last = 12
	for generation := 1; generation <= last; generation++ {
		s.create(t, generation)
	}
	s.has(t, last-2, 0, last-2, last-1, last)
	s.has(t, last+1, 0)
	s.publish(t, last-1)
	s.has(t, last-2, last-1, last-2, last-1, last)
	s.has(t, last, 0, last)
	found, err := s.Store.Read(t.Context(), s.Name, owner(), 1)
	says(t, "read from the first", err, nil)
	if got := found.Records; len(got) < 3 || got[len(got)-1] != record(last) || found.Published != last-1 {
		t.Errorf("from the first on there are %v, and %d is published", got, found.Published)
	}
}

func published(t *testing.T, s Subject) {
	s.create(t, 1)
	s.publish(t, 1)
	s.publish(t, 1)
	s.has(t, 1, 1, 1)
	s.create(t, 2)
	s.has(t, 1, 1, 1, 2)
	s.publish(t, 2)
	s.has(t, 1, 2, 1, 2)
	s.Spoil(t, 0, owner())
	s.has(t, 1, 0, 1, 2)
	s.publish(t, 2)
	s.has(t, 1, 2, 1, 2)
}

func checked(t *testing.T, s Subject) {
	s.create(t, 1)
	says(t, "check of the first publication", s.Store.CheckPublish(t.Context(), s.Name, owner(), record(1)), nil)
	s.has(t, 1, 0, 1)
	s.publish(t, 1)
	s.create(t, 2)
	says(t, "check of the next publication", s.Store.CheckPublish(t.Context(), s.Name, owner(), record(2)), nil)
	s.has(t, 1, 1, 1, 2)
}

// neverBackwards lets late writers publish the generation before the published one, one by one and in a race.
func neverBackwards(t *testing.T, s Subject) {
	const racers = 4
	s.create(t, 1)
	s.create(t, 2)
	s.publish(t, 2)
	says(t, "publish generation 1 over generation 2", s.Store.Publish(t.Context(), s.Name, owner(), record(1)), credential.ErrSuperseded)
	s.has(t, 1, 2, 1, 2)
	for generation := 3; generation <= 6; generation++ {
		s.create(t, generation)
		var all sync.WaitGroup
		for range racers {
			all.Go(func() {
				err := s.Store.Publish(t.Context(), s.Name, owner(), record(generation-1))
				if err != nil && !errors.Is(err, credential.ErrSuperseded) {
					t.Errorf("a late writer says %v, want %v or no error", err, credential.ErrSuperseded)
				}
			})
			all.Go(func() {
				says(t, fmt.Sprint("publish generation ", generation), s.Store.Publish(t.Context(), s.Name, owner(), record(generation)), nil)
			})
		}
		all.Wait()
		s.has(t, generation-1, generation, generation-1, generation)
	}
}

// lostBehindTheCopy has a copy of a generation that the store does not have. The other records can be read and deleted.
func lostBehindTheCopy(t *testing.T, s Subject) {
	s.create(t, 1)
	s.publish(t, 2)
	s.copies(t, 2)
	s.has(t, 1, 0, 1)
	s.create(t, 3)
	s.has(t, 1, 0, 1, 3)
	s.publish(t, 3)
	s.copies(t, 3)
	s.create(t, 4)
	s.publish(t, 5)
	s.has(t, 3, 0, 4)
	s.create(t, 6)
	says(t, "delete", s.Store.Delete(t.Context(), s.Name, owner()), nil)
	for _, generation := range []int{1, 6} {
		s.create(t, generation)
	}
}

// copies checks which generation the copy for readers names.
func (s Subject) copies(t *testing.T, want int) {
	t.Helper()
	if found, err := s.Store.Read(t.Context(), s.Name, owner(), 1); err != nil || found.Copy != want {
		t.Errorf("the copy names generation %d, want %d: %v", found.Copy, want, err)
	}
}

func deletion(t *testing.T, s Subject) {
	says(t, "delete nothing", s.Store.Delete(t.Context(), s.Name, owner()), nil)
	s.create(t, 1)
	s.create(t, 2)
	// An interrupted deletion has removed the copy for readers. The next deletion continues.
	says(t, "delete", s.Store.Delete(t.Context(), s.Name, owner()), nil)
	s.has(t, 1, 0)
	says(t, "delete again", s.Store.Delete(t.Context(), s.Name, owner()), nil)
	// A missing old generation does not prevent the deletion of later ones.
	s.create(t, 1)
	s.create(t, 3)
	s.publish(t, 3)
	says(t, "delete with a gap", s.Store.Delete(t.Context(), s.Name, owner()), nil)
	s.has(t, 1, 0)
	s.create(t, 3)
}
