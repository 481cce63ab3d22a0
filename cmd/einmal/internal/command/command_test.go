package command

import (
	"os"
	"testing"
	"testing/synctest"
	"time"
)

func TestASecondSignalCountsUnlessItIsTheFirstOnceMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		signals, again := make(chan os.Signal), make(chan struct{})
		stops := 0
		go passOn(signals, func() { stops++ }, again)
		signals <- os.Interrupt
		signals <- os.Interrupt
		synctest.Wait()
		select {
		case <-again:
			t.Error("one signal that came twice ended all at once")
		default:
		}
		<-time.After(300 * time.Millisecond)
		signals <- os.Interrupt
		<-again
		if stops != 1 {
			t.Errorf("stopped %d times, want once", stops)
		}
	})
}

func TestKubectlsArgumentsAreUnderstood(t *testing.T) {
	for _, c := range []struct {
		args             []string
		kubeconfig, help bool
	}{
		{nil, false, true},
		{[]string{"get", "pods"}, false, false},
		{[]string{"get", "--kubeconfig", "f"}, true, false},
		{[]string{"--kubeconfig=f", "get"}, true, false},
		{[]string{"exec", "pod", "--", "x", "--kubeconfig", "--help"}, false, false},
		{[]string{"get", "-h"}, false, true},
		{[]string{"help"}, false, true},
	} {
		if got := namesKubeconfig(c.args); got != c.kubeconfig {
			t.Errorf("%q names a kubeconfig: %v, want %v", c.args, got, c.kubeconfig)
		}
		if got := asksForHelp(c.args); got != c.help {
			t.Errorf("%q asks for help: %v, want %v", c.args, got, c.help)
		}
	}
}

func TestTheCommitIsPartOfTheVersion(t *testing.T) {
	for version, want := range map[string]string{
		"85f4285": "85f4285", "85f4285-dirty": "85f4285", "v0.2.0-14-g85f4285": "85f4285", "v0.2.0-14-g85f4285-dirty": "85f4285",
		"v0.0.0-20261123071612-85f4285a9fa0": "85f4285a9fa0", "v0.0.0-20261123071612-85f4285a9fa0+dirty": "85f4285a9fa0",
		"v0.2.0": "unknown", "unknown": "unknown", "(devel)": "unknown",
	} {
		if got := commitOf(version); got != want {
			t.Errorf("commit of %s: %s, want %s", version, got, want)
		}
	}
}
