package bucket

import (
	"maps"
	"slices"
	"testing"
	"time"
)

func TestRetentionKeepsTheNewest(t *testing.T) {
	names := []string{third, first, second, first} // a backup may be in both places
	years := func(n int) time.Time { return now().AddDate(n, 0, 0) }
	for name, test := range map[string]struct {
		keep  Retention
		names []string
		now   time.Time
		want  []string
	}{
		"none":                             {Retention{Count: 2}, nil, now(), nil},
		"count":                            {Retention{Count: 2}, names, now(), []string{second, third}},
		"count above the number":           {Retention{Count: 9}, names, now(), []string{first, second, third}},
		"days":                             {Retention{Days: 2}, names, time.Date(2026, 11, 27, 3, 0, 0, 0, time.UTC), []string{second, third}},
		"days with a part of a second":     {Retention{Days: 2}, names, time.Date(2026, 11, 27, 3, 0, 0, 999, time.UTC), []string{second, third}},
		"days and a second":                {Retention{Days: 2}, names, time.Date(2026, 11, 27, 3, 0, 1, 0, time.UTC), []string{third}},
		"days in another time zone":        {Retention{Days: 2}, names, time.Date(2026, 11, 27, 5, 0, 0, 0, time.FixedZone("", 7200)), []string{second, third}},
		"days and a clock that went ahead": {Retention{Days: 2}, names, years(10), []string{third}},
		"days and a clock that went back":  {Retention{Days: 2}, names, years(-10), []string{first, second, third}},
		"count does not look at the clock": {Retention{Count: 1}, names, years(-10), []string{third}},
	} {
		t.Run(name, func(t *testing.T) {
			got := slices.Sorted(maps.Keys(test.keep.wanted(test.names, test.now)))
			if !slices.Equal(got, test.want) {
				t.Errorf("kept %s, want %s", got, test.want)
			}
		})
	}
}

func TestRetentionNeedsOneLimit(t *testing.T) {
	s := newServer(t)
	b, _ := s.open(t)
	for _, keep := range []Retention{{}, {Count: 1, Days: 1}, {Count: -1}, {Count: -1, Days: 2}} {
		wantError(t, b.Upload(t.Context(), t.TempDir(), keep, now()), "exactly one")
	}
	if _, requests := s.counted(); len(requests) != 0 {
		t.Errorf("requests: %s", requests)
	}
}

func TestNamesAreTimes(t *testing.T) {
	for name, want := range map[string]bool{
		first: true, "": false, ".": false, "..": false, "20261124T030000": false, "20261124T030000Z.part": false, "20261324T030000Z": false,
		"20261124T030000.5Z": false, "../" + first: false, first + "/": false, "lost+found": false,
	} {
		if _, got := parseName(name); got != want {
			t.Errorf("%q is a name: %t, want %t", name, got, want)
		}
	}
}
