package object_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal-operators/einmal/internal/core/object"
)

func TestGoValuesBecomeThoseOfJSON(t *testing.T) {
	given := object.Body{
		"list": []string{"a"}, "map": map[string]string{"a": "b"}, "int": 3, "small": int32(4), "half": float32(0.5),
		"maps": []map[string]any{{"deep": []int{1}}}, "none": nil, "kept": []any{int64(1), 1.5, true, "x"},
	}
	want := object.Body{
		"list": []any{"a"}, "map": object.Body{"a": "b"}, "int": int64(3), "small": int64(4), "half": 0.5,
		"maps": []any{object.Body{"deep": []any{int64(1)}}}, "none": nil, "kept": []any{int64(1), 1.5, true, "x"},
	}
	got, err := object.Plain(given)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestWhatJSONCannotHoldIsAnError(t *testing.T) {
	if _, err := object.Plain(object.Body{"spec": object.Body{"wait": make(chan int)}}); err == nil || !strings.Contains(err.Error(), "chan int") {
		t.Errorf("got %v", err)
	}
}
