package reconciler

import (
	"testing"
	"time"

	"github.com/einmal-operators/einmal/internal/core/object"
)

// What the cache shows is handled, unless this process knows something newer.
func TestWhatTheCacheShowsIsTrustedUnlessSomethingNewerIsKnown(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	at := func(version string) object.Body {
		return object.Body{"metadata": object.Body{"resourceVersion": version}}
	}
	over := object.Body{"metadata": object.Body{"resourceVersion": "5", "deletionTimestamp": "2026-11-30T12:00:00Z"}}
	for _, test := range []struct {
		title string
		known func(*freshness)
		shown string
		other bool
		after time.Duration
		want  trust
		until time.Time
	}{
		{title: "nothing is known", known: func(*freshness) {}, shown: "5"},
		{title: "the same version", known: func(f *freshness) { f.wrote(at("5"), "4", now) }, shown: "5"},
		{title: "a newer version", known: func(f *freshness) { f.wrote(at("5"), "4", now) }, shown: "6"},
		{
			title: "an older version", known: func(f *freshness) { f.wrote(at("5"), "4", now) }, shown: "4",
			want: tooOld, until: now.Add(patience),
		},
		{
			title: "an older version for a long time", known: func(f *freshness) { f.read(at("5"), "4", now) }, shown: "4", after: patience,
			want: untrusted,
		},
		{
			title: "the version of before, after a write gets an older one from a restored etcd", known: func(f *freshness) { f.wrote(at("5"), "9", now) }, shown: "9",
			want: tooOld, until: now.Add(patience),
		},
		{
			title: "the version of before, long after a write", known: func(f *freshness) { f.wrote(at("5"), "9", now) }, shown: "9", after: patience,
			want: untrusted,
		},
		{title: "another version than before, after a restore of etcd", known: func(f *freshness) { f.wrote(at("5"), "9", now) }, shown: "6"},
		{title: "an object that our write has ended", known: func(f *freshness) { f.wrote(over, "4", now) }, shown: "5", want: ended},
		{title: "an object that our write has ended, much later", known: func(f *freshness) { f.wrote(over, "4", now) }, shown: "5", after: time.Hour, want: ended},
		{title: "an object that our write has ended, in a newer version", known: func(f *freshness) { f.wrote(over, "4", now) }, shown: "6", want: untrusted},
		{title: "another object of the same name", known: func(f *freshness) { f.wrote(over, "4", now) }, shown: "6", other: true},
		{
			title: "an object that is not found", known: func(f *freshness) { f.gone("5", now) }, shown: "5",
			want: ended, until: now.Add(goneRecheck),
		},
		{
			title: "an object that is not found, in an older version than was written", known: func(f *freshness) { f.wrote(at("6"), "4", now); f.gone("5", now) }, shown: "5",
			after: patience, want: untrusted,
		},
		{title: "an object that is not found, later", known: func(f *freshness) { f.gone("5", now) }, shown: "5", after: goneRecheck, want: untrusted},
		{title: "an object that was not found and is read", known: func(f *freshness) { f.gone("5", now); f.read(at("5"), "4", now) }, shown: "5"},
	} {
		t.Run(test.title, func(t *testing.T) {
			var f freshness
			test.known(&f)
			got, until := f.of(test.shown, !test.other, now.Add(test.after))
			if got != test.want || !until.Equal(test.until) {
				t.Errorf("version %s is %d until %v, want %d until %v", test.shown, got, until, test.want, test.until)
			}
		})
	}
}
