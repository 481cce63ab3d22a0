package dev

import (
	"os"
	"testing"
)

func TestPrintedKubectlCommandsWorkInAnyDirectory(t *testing.T) {
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for want, options := range map[string]Options{
		"einmal kubectl --data '/a b/.devcluster'":                                   {Self: "einmal"},
		"'/my bin/einmal' kubectl --data '/a b/.devcluster'":                         {Self: "/my bin/einmal"},
		here + "/bin/einmal kubectl --data '/a b/.devcluster'":                       {Self: "bin/einmal"},
		"EINMAL_DEVCLUSTER=" + here + "/dc einmal kubectl --data '/a b/.devcluster'": {Self: "einmal", Devcluster: "dc"},
	} {
		s := &session{options: options, data: "/a b/.devcluster"}
		if got := s.kubectl(); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}
