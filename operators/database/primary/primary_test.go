package primary

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	v1 "github.com/einmal-operators/einmal/operators/database/api/v1"
)

func TestThePrimaryIsChosen(t *testing.T) {
	known := &v1.Primary{Pod: "db-0", UID: "first", Term: 3}
	tests := map[string]struct {
		known *v1.Primary
		pod   *Pod
		want  *v1.Primary
	}{
		"no Pod yet":                              {nil, nil, nil},
		"the first Pod":                           {nil, &Pod{Name: "db-0", UID: "first"}, &v1.Primary{Pod: "db-0", UID: "first", Term: 1}},
		"the known Pod":                           {known, &Pod{Name: "db-0", UID: "first", Grant: "first 3"}, known},
		"the known Pod has lost its annotation":   {known, &Pod{Name: "db-0", UID: "first"}, known},
		"the known Pod is being deleted":          {known, &Pod{Name: "db-0", UID: "first", Terminating: true}, known},
		"the known Pod is gone":                   {known, nil, known},
		"another Pod":                             {known, &Pod{Name: "db-0", UID: "second"}, &v1.Primary{Pod: "db-0", UID: "second", Term: 4}},
		"another Pod is being deleted":            {known, &Pod{Name: "db-0", UID: "second", Terminating: true}, known},
		"another Pod with the grant of the first": {known, &Pod{Name: "db-0", UID: "second", Grant: "first 9"}, &v1.Primary{Pod: "db-0", UID: "second", Term: 4}},
		"the status is lost":                      {nil, &Pod{Name: "db-0", UID: "second", Grant: "second 4"}, &v1.Primary{Pod: "db-0", UID: "second", Term: 4}},
		"the status is that of an earlier time":   {known, &Pod{Name: "db-0", UID: "second", Grant: "second 7 initdb"}, &v1.Primary{Pod: "db-0", UID: "second", Term: 7}},
		"the Pod was a standby":                   {known, &Pod{Name: "db-1", UID: "second", Grant: "second standby"}, &v1.Primary{Pod: "db-1", UID: "second", Term: 4}},
		"the latest is known without its uid":     {&v1.Primary{Pod: "db-1", Term: 4}, &Pod{Name: "db-1", UID: "second", Grant: "second 4"}, &v1.Primary{Pod: "db-1", UID: "second", Term: 4}},
		"it has another Pod now":                  {&v1.Primary{Pod: "db-1", Term: 4}, &Pod{Name: "db-1", UID: "second", Grant: "x 4"}, &v1.Primary{Pod: "db-1", UID: "second", Term: 5}},
		"the grant is malformed":                  {known, &Pod{Name: "db-0", UID: "second", Grant: "second x"}, &v1.Primary{Pod: "db-0", UID: "second", Term: 4}},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			if diff := cmp.Diff(test.want, Choose(test.known, test.pod)); diff != "" {
				t.Errorf("primary (-want +got):\n%s", diff)
			}
		})
	}
}

// What the status does not know any more, claims and Pods do.
func TestTheLatestTermDecides(t *testing.T) {
	known := &v1.Primary{Pod: "db-0", UID: "first", Term: 3}
	tests := map[string]struct {
		known   *v1.Primary
		holders []Holder
		want    *v1.Primary
	}{
		"a new database":            {nil, []Holder{{"db-0", 0}, {"db-1", 0}}, nil},
		"the status knows":          {known, []Holder{{"db-0", 3}, {"db-1", 2}}, known},
		"the status is ahead":       {known, []Holder{{"db-0", 1}, {"db-1", 2}}, known},
		"the status is lost":        {nil, []Holder{{"db-0", 1}, {"db-1", 2}, {"db-2", 1}}, &v1.Primary{Pod: "db-1", Term: 2}},
		"the status is restored":    {known, []Holder{{"db-0", 3}, {"db-1", 4}}, &v1.Primary{Pod: "db-1", Term: 4}},
		"the same Pod got one more": {known, []Holder{{"db-0", 5}, {"db-1", 4}}, &v1.Primary{Pod: "db-0", Term: 5}},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			if diff := cmp.Diff(test.want, Latest(test.known, test.holders)); diff != "" {
				t.Errorf("latest (-want +got):\n%s", diff)
			}
		})
	}
}

// A standby becomes the primary only after the former one has said that it has written everything.
func TestASwitchoverGoesOnOnlyWhenNothingIsLost(t *testing.T) {
	moving := v1.Switchover{From: "db-0", To: "db-1", UID: "target"}
	target := &Pod{Name: "db-1", UID: "target"}
	ended := func(said string) *Former { return &Former{Terminating: true, Kept: true, Ended: true, Said: said} }
	tests := map[string]struct {
		former *Former
		target *Pod
		want   Action
		text   string
	}{
		"the primary runs":                 {&Former{}, target, Stop, ""},
		"it would not be kept":             {&Former{Kept: true}, target, Stop, ""},
		"it ends":                          {&Former{Terminating: true, Kept: true}, target, Wait, ""},
		"it has written everything":        {ended("ShutDown: 0/3000028"), target, Compare, "0/3000028"},
		"it was killed":                    {ended(""), target, Abandon, "the server in the Pod db-0 has not reported a clean shutdown"},
		"it has failed":                    {ended("VolumeFull: 3 of 300 MiB are free"), target, Abandon, "the server in the Pod db-0 has not reported a clean shutdown"},
		"its Pod is gone":                  {nil, target, Abandon, "the server in the Pod db-0 has not reported a clean shutdown"},
		"its Pod is deleted by force":      {&Former{Terminating: true, Kept: true, Forced: true}, target, Abandon, "the Pod db-0 was deleted by force"},
		"its Pod was deleted before":       {&Former{Terminating: true}, target, Abandon, "the Pod db-0 was deleted by something else"},
		"the standby is gone":              {&Former{}, nil, Abandon, "the Pod db-1 of the standby was deleted"},
		"the standby is another Pod":       {&Former{}, &Pod{Name: "db-1", UID: "new"}, Abandon, "the Pod db-1 of the standby was deleted"},
		"the standby is being deleted":     {ended("ShutDown: 0/3000028"), &Pod{Name: "db-1", UID: "target", Terminating: true}, Abandon, "the Pod db-1 of the standby was deleted"},
		"it ended, then was forced to end": {&Former{Terminating: true, Kept: true, Forced: true, Ended: true, Said: "ShutDown: 0/28"}, target, Compare, "0/28"},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			got, text := Next(moving, test.former, test.target)
			if got != test.want || text != test.text {
				t.Errorf("the next action is %d, %q; want %d, %q", got, text, test.want, test.text)
			}
		})
	}
}

func TestAGrantNamesThePod(t *testing.T) {
	chosen := v1.Primary{Pod: "db-0", UID: "first", Term: 3}
	if got := Grant(chosen); got != "first 3" {
		t.Errorf("the grant is %q", got)
	}
	if got := InitialGrant(chosen); got != "first 3 initdb" {
		t.Errorf("the grant of a new database is %q", got)
	}
	if got := PromotionGrant(chosen); got != "first 3 promote" {
		t.Errorf("the grant of a standby that becomes the primary is %q", got)
	}
	if got := *Promoted(chosen, "db-1", "second"); got != (v1.Primary{Pod: "db-1", UID: "second", Term: 4}) {
		t.Errorf("the primary after a switchover is %+v", got)
	}
	if got := StandbyGrant(chosen.UID); got != "first standby" {
		t.Errorf("the grant of a standby is %q", got)
	}
}

// A request to give up the primary names its present Pod, which accepts no connections.
func TestAFailoverIsRefused(t *testing.T) {
	known := &v1.Primary{Pod: "db-0", UID: "first", Term: 3}
	for title, test := range map[string]struct {
		latest    *v1.Primary
		available bool
		want      string
	}{
		"no primary":             {nil, false, "there has been no primary yet"},
		"another primary":        {&v1.Primary{Pod: "db-1", UID: "second"}, false, "the uid first is not that of the primary, which is the Pod db-1 with the uid second"},
		"it accepts connections": {known, true, "the Pod db-0 accepts connections: set spec.primary, and nothing is lost"},
		"it has to be given up":  {known, false, ""},
	} {
		t.Run(title, func(t *testing.T) {
			if got := Refused("first", test.latest, test.available); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// The standby that has most becomes the primary. What was written before an earlier promotion does not count.
func TestTheMostAdvancedStandbyIsChosen(t *testing.T) {
	for want, candidates := range map[string][]Candidate{
		"only":          {{Pod: "only"}},
		"more":          {{Pod: "less", Timeline: 2, Received: 5}, {Pod: "more", Timeline: 2, Received: 6}},
		"first":         {{Pod: "first", Timeline: 2, Received: 5}, {Pod: "second", Timeline: 2, Received: 5}},
		"next timeline": {{Pod: "older timeline", Timeline: 1, Received: 9}, {Pod: "next timeline", Timeline: 2, Received: 5}},
	} {
		if got := MostAdvanced(candidates).Pod; got != want {
			t.Errorf("of %+v, got %s, want %s", candidates, got, want)
		}
	}
}

// A standby that has more of a timeline than the primary had when it left that cannot follow it.
func TestAStandbyThatHasMoreThanThePrimaryHasDiverged(t *testing.T) {
	forks := map[int64]int64{1: 100, 2: 200}
	for title, test := range map[string]struct {
		timeline, received int64
		want               bool
	}{
		"it has more":                        {1, 101, true},
		"it has as much":                     {1, 100, false},
		"it has more of a later timeline":    {2, 201, true},
		"it has less of a later timeline":    {2, 150, false},
		"it is on the primary's timeline":    {3, 900, false},
		"it says nothing about its timeline": {0, 900, false},
	} {
		if got := Diverged(forks, test.timeline, test.received); got != test.want {
			t.Errorf("%s: got %t, want %t", title, got, test.want)
		}
	}
}
