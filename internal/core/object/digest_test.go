package object_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal-operators/einmal/internal/core/object"
)

func TestKeyedDigestsTellNothingWithoutTheKey(t *testing.T) {
	value := object.Body{"data": object.Body{"password": "hunter2"}}
	one, other := object.Keyed([]byte("one")), object.Keyed([]byte("other"))
	if one.Of("u", value) != object.Keyed([]byte("one")).Of("u", value) {
		t.Error("a value has two digests")
	}
	if one.Of("u", value) == one.Of("v", value) {
		t.Error("equal values of two objects have equal digests")
	}
	if !one.Made(one.Of("u", value)) || one.Made(other.Of("u", value)) || one.Made(object.Digest(value)) {
		t.Error("keys are mixed up")
	}
	if strings.Contains(one.Of("u", value), object.Digest(value)) {
		t.Error("the keyed digest contains the plain one")
	}
	plain := object.Digester{}
	if plain.HasKey() || !one.HasKey() || plain.Of("u", value) != object.Digest(value) || !plain.Made(object.Digest(value)) {
		t.Error("the zero value does not make plain digests")
	}
}

func TestASecretIsReadAsTheAPIServerKeepsIt(t *testing.T) {
	written := object.Body{
		"data":       object.Body{"old": "b2xk", "both": "b2xk"},
		"stringData": object.Body{"new": "fresh", "both": "fresh", "odd": 1.0},
	}
	want := object.Body{"data": object.Body{"old": "b2xk", "new": "ZnJlc2g=", "both": "ZnJlc2g="}}
	if diff := cmp.Diff(want, object.FoldStringData(written)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(want, object.FoldStringData(want)); diff != "" {
		t.Error(diff)
	}
}
