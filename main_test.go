package einmal_test

import (
	"flag"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
)

// updateFlag makes tests rewrite what scenario scripts expect.
const updateFlag = "update"

// TestMain adds flags and silences the libraries' own logs; operators log through their own logger.
func TestMain(m *testing.M) {
	flag.Bool(updateFlag, false, "rewrite what scenario scripts expect, where it is not so")
	ctrl.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	m.Run()
}
