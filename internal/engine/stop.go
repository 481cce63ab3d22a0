package engine

import (
	"errors"
)

// Why all daemons of a kind are stopped.
var (
	errOperatorStops = errors.New("the operator is stopping")
	errKindRests     = errors.New("the kind is no longer served, or its registration changed")
)

// whyOver tells why nothing is handled any more: because the operator stops, or because there is nothing to handle.
func (k *kindController) whyOver() error {
	select {
	case <-k.end:
		return errOperatorStops
	default:
		return errKindRests
	}
}
