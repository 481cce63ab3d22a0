package apiserver

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// WithClock gives the server a clock of its own, as a machine of its own has. Objects get their times of creation and deletion from it, and
// definitions those of their conditions. How long things last, such as a watch, is not measured with it, and managed fields have the time of
// the process. The server calls it from several goroutines.
func WithClock(now func() time.Time) Option {
	return func(s *Server) error {
		s.clock = now
		return nil
	}
}

// now is the server's time.
func (s *Server) now() metav1.Time {
	if s.clock == nil {
		return metav1.Now()
	}
	return metav1.NewTime(s.clock())
}
