package simulation

import (
	"io"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
)

// Faults of a watch event change what the watch delivers.
func TestWhatFaultsDoToEvents(t *testing.T) {
	const (
		first  = `{"type":"ADDED","object":{"metadata":{"namespace":"default","name":"one"}}}`
		second = `{"type":"ADDED","object":{"metadata":{"namespace":"default","name":"two"}}}`
		same   = `{"type":"MODIFIED","object":{"metadata":{"namespace":"default","name":"one"}}}`
	)
	for _, test := range []struct {
		name            string
		fault           Kind
		given, delivers []string
	}{
		{"none", "", []string{first, second}, []string{first, second}},
		{"doubled", EventDoubled, []string{first, second}, []string{first, first, second}},
		{"lost", EventLost, []string{first, second}, []string{strings.TrimSpace(expired)}},
		{"after the next one", EventsSwapped, []string{first, second}, []string{second, first}},
		{"events of one object stay in order", EventsSwapped, []string{first, same}, []string{first, same}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &World{events: map[string]int{}, setup: Setup{Schedule: Schedule{{Kind: test.fault, At: Point{What: "configmaps", N: 1}}}}}
				s := &stream{
					world: w, resource: "configmaps", source: io.NopCloser(strings.NewReader(strings.Join(test.given, "\n") + "\n")),
					arriving: make(chan frame, 1), closed: make(chan struct{}),
				}
				go s.receive()
				read, err := io.ReadAll(s)
				if err != nil {
					t.Error(err)
				}
				if diff := cmp.Diff(test.delivers, strings.Split(strings.TrimSpace(string(read)), "\n")); diff != "" {
					t.Errorf("delivered (- want, + got):\n%s", diff)
				}
				_ = s.Close()
			})
		})
	}
}
