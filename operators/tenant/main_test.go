package main

import (
	"os"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
)

// TestMain gives the operators that tests run an AWS account, which the emulator does not look at. With a command as its first argument, the test
// binary acts as the operator.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-") {
		main()
		return
	}
	ctrllog.SetLogger(logr.Discard()) // Otherwise controller-runtime warns about a missing logger.
	for name, value := range map[string]string{"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"} {
		if err := os.Setenv(name, value); err != nil {
			panic(err)
		}
	}
	m.Run()
}
