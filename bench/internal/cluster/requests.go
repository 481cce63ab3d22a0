package cluster

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Requests returns how many requests the API server has answered until now for objects of a resource, watches and lists aside.
func (c *Cluster) Requests(ctx context.Context, resource string) (int, error) {
	metrics, err := c.API.Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return 0, fmt.Errorf("read the metrics of the API server: %w", err)
	}
	return count(metrics, resource)
}

// count adds the requests for a resource up.
func count(metrics []byte, resource string) (int, error) {
	label, long := `resource="`+resource+`"`, regexp.MustCompile(`verb="(WATCH|LIST|CONNECT)"`)
	sum := 0.0
	lines := bufio.NewScanner(bytes.NewReader(metrics))
	lines.Buffer(nil, len(metrics)+1)
	for lines.Scan() {
		line := lines.Text()
		if !strings.HasPrefix(line, "apiserver_request_total{") || !strings.Contains(line, label) || long.MatchString(line) {
			continue
		}
		value, err := strconv.ParseFloat(line[strings.LastIndexByte(line, ' ')+1:], 64)
		if err != nil {
			return 0, fmt.Errorf("line %q: %w", line, err)
		}
		sum += value
	}
	return int(sum), nil
}
