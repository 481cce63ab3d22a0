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

func TestAGrantNamesThePod(t *testing.T) {
	chosen := v1.Primary{Pod: "db-0", UID: "first", Term: 3}
	if got := Grant(chosen); got != "first 3" {
		t.Errorf("the grant is %q", got)
	}
	if got := InitialGrant(chosen); got != "first 3 initdb" {
		t.Errorf("the grant of a new database is %q", got)
	}
	if got := StandbyGrant(chosen.UID); got != "first standby" {
		t.Errorf("the grant of a standby is %q", got)
	}
}
