package object

import (
	"fmt"
	"math"

	"k8s.io/apimachinery/pkg/util/json"
)

// Plain returns a body that holds only the types of Body. Handlers of objects without a Go type also set values such as []string,
// map[string]string or int, which mean the same in JSON. Plain returns body itself if there is nothing to convert. The error is about a value
// that JSON cannot hold.
func Plain(body Body) (Body, error) {
	if isPlain(body) {
		return body, nil
	}
	text, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("it holds a value that JSON cannot hold: %w", err)
	}
	var plain Body
	if err := json.Unmarshal(text, &plain); err != nil {
		return nil, fmt.Errorf("read it back from JSON: %w", err)
	}
	return plain, nil
}

func isPlain(value any) bool {
	switch value := value.(type) {
	case nil, bool, string, int64:
		return true
	case float64:
		return !math.IsNaN(value) && !math.IsInf(value, 0)
	case Body:
		for _, child := range value {
			if !isPlain(child) {
				return false
			}
		}
		return true
	case []any:
		for _, item := range value {
			if !isPlain(item) {
				return false
			}
		}
		return true
	default:
		return false
	}
}
