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

func TestKubectlArgumentsAreClassified(t *testing.T) {
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
			t.Errorf("namesKubeconfig(%q) = %v, want %v", c.args, got, c.kubeconfig)
		}
		if got := asksForHelp(c.args); got != c.help {
			t.Errorf("asksForHelp(%q) = %v, want %v", c.args, got, c.help)
		}
	}
}

func TestEmptyValuesOfKubectlFlagsAreFound(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"get", "--kubeconfig", ""}, "--kubeconfig"},
		{[]string{"--kubeconfig=", "get"}, "--kubeconfig"},
		{[]string{"get", "--context", ""}, "--context"},
		{[]string{"get", "--context="}, "--context"},
		{[]string{"get", "-s", ""}, "-s"},
		{[]string{"get", "--kubeconfig", "f", "--context=c"}, ""},
		{[]string{"get", "--kubeconfig=f", "-l", ""}, ""},
		{[]string{"get", "--kubeconfig"}, ""},
		{[]string{"exec", "pod", "--", "x", "--kubeconfig", ""}, ""},
	} {
		if got, found := emptyClusterFlag(c.args); got != c.want || found != (c.want != "") {
			t.Errorf("emptyClusterFlag(%q) = %q, %v, want %q", c.args, got, found, c.want)
		}
	}
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
