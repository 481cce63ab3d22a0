package apiserver

import (
	"encoding/json"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/einmal-operators/einmal/internal/testkit/apiserver/kind"
)

// The limits of etcd in bytes: of one request, and of one message to it.
const (
	maxRequest = 1536 * 1024
	maxMessage = 2 * 1024 * 1024
)

// escaped is how many bytes one byte of a text can become in JSON.
const escaped = 6

// fits refuses an object that etcd would not store. The real limit counts the bytes of the whole request, which are a
// few hundred more than those of the object. Built-in kinds are stored in a shorter form; their own limits come first.
func fits(k *kind.Kind, object *unstructured.Unstructured) error {
	if !k.Custom() && k.Resource() != definitions || atLeast(object.Object) < maxRequest/escaped {
		return nil
	}
	text, err := json.Marshal(object.Object)
	if err != nil {
		return fmt.Errorf("encode object: %w", err)
	}
	switch size := len(text); {
	case size > maxMessage:
		return fmt.Errorf("rpc error: code = ResourceExhausted desc = trying to send message larger than max (%d vs. %d)", size, maxMessage)
	case size > maxRequest:
		return errors.New("etcdserver: request is too large")
	}
	return nil
}

// atLeast counts the bytes of all texts in a value.
func atLeast(value any) int {
	size := 1
	switch typed := value.(type) {
	case string:
		size += len(typed)
	case map[string]any:
		for key, child := range typed {
			size += len(key) + atLeast(child)
		}
	case []any:
		for _, child := range typed {
			size += atLeast(child)
		}
	}
	return size
}
