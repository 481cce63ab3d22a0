package cluster

import (
	"context"
	"fmt"
	"io"
	"net/http"
)

// Fetch asks an address that an operator serves, such as that of its metrics.
func Fetch(ctx context.Context, address string) (code int, text string, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return 0, "", fmt.Errorf("ask %s: %w", address, err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, "", fmt.Errorf("ask %s: %w", address, err)
	}
	defer func() { _ = answer.Body.Close() }()
	all, err := io.ReadAll(answer.Body)
	if err != nil {
		return 0, "", fmt.Errorf("read the answer of %s: %w", address, err)
	}
	return answer.StatusCode, string(all), nil
}
