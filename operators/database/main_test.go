package main

import (
	"testing"

	"github.com/go-logr/logr"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
)

// TestMain silences the libraries' own logs; otherwise controller-runtime warns about a missing logger.
func TestMain(m *testing.M) {
	ctrllog.SetLogger(logr.Discard())
	m.Run()
}
