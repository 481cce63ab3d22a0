package bucket

import (
	"fmt"
	"slices"
	"time"
)

// nameLayout is the layout of the name of a backup, which is the time when it began, in UTC: see backup.sh.
const nameLayout = "20060102T150405Z"

// day is the time after which backups that are not complete are deleted.
const day = 24 * time.Hour

// Retention says which backups are kept: the newest Count, or those that began in the last Days of 24 hours. Exactly one of them is above 0. The newest
// backup is always kept.
type Retention struct{ Count, Days int }

func (r Retention) validate() error {
	if r.Count < 0 || r.Days < 0 || (r.Count > 0) == (r.Days > 0) {
		return fmt.Errorf("retention: exactly one of the count and the days must be above 0, got %d and %d", r.Count, r.Days)
	}
	return nil
}

// wanted returns the backups to keep. It decides like backup.sh.
func (r Retention) wanted(names []string, now time.Time) map[string]bool {
	names = slices.Compact(slices.Sorted(slices.Values(names)))
	wanted := make(map[string]bool)
	limit := now.UTC().Truncate(time.Second).Add(-time.Duration(r.Days) * day)
	for i, name := range names {
		begun, ok := parseName(name)
		if !ok {
			continue
		}
		newer := len(names) - 1 - i
		if newer == 0 || r.Count > newer || r.Days > 0 && !begun.Before(limit) {
			wanted[name] = true
		}
	}
	return wanted
}

// parseName returns when the backup of a name began, and whether the text is such a name.
func parseName(name string) (begun time.Time, ok bool) {
	begun, err := time.Parse(nameLayout, name)
	// Parse also accepts fractions of a second.
	return begun, err == nil && begun.Format(nameLayout) == name
}
