package engine

import "testing"

func TestThePercentageOfAVolume(t *testing.T) {
	for text, want := range map[string]int32{"100 100": 0, "1000 125": 88, "307200 0\n": 100, "3 2": 34} {
		if got, err := UsedPercent(text); err != nil || got != want {
			t.Errorf("%q is %d %%, %v; want %d %%", text, got, err, want)
		}
	}
	for _, text := range []string{"", "0 0", "10", "10 11", "a b", "-1 -1"} {
		if got, err := UsedPercent(text); err == nil {
			t.Errorf("%q is %d %%, want an error", text, got)
		}
	}
}
