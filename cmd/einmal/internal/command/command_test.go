package command

import (
	"os"
	"testing"
	"testing/synctest"
	"time"
)

func TestSecondSignalForcesStopUnlessItIsADuplicate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		signals, forceStop := make(chan os.Signal), make(chan struct{})
		stops := 0
		go handleSignals(signals, func() { stops++ }, forceStop)
		signals <- os.Interrupt
		signals <- os.Interrupt
		synctest.Wait()
		select {
		case <-forceStop:
			t.Error("a duplicate of the first signal forced a stop")
		default:
		}
		<-time.After(300 * time.Millisecond)
		signals <- os.Interrupt
		<-forceStop
		if stops != 1 {
			t.Errorf("stopped %d times, want once", stops)
		}
	})
}

func TestCommitIsParsedFromTheVersion(t *testing.T) {
	for version, want := range map[string]string{
		"85f4285": "85f4285", "85f4285-dirty": "85f4285", "v0.2.0-14-g85f4285": "85f4285", "v0.2.0-14-g85f4285-dirty": "85f4285",
		"v0.0.0-20261123071612-85f4285a9fa0": "85f4285a9fa0", "v0.0.0-20261123071612-85f4285a9fa0+dirty": "85f4285a9fa0",
		"v0.2.0": "unknown", "unknown": "unknown", "(devel)": "unknown",
	} {
		if got := commitOf(version); got != want {
			t.Errorf("commitOf(%q) = %q, want %q", version, got, want)
		}
	}
}
