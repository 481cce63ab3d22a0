package cluster

import (
	"bufio"
	"bytes"
	"net/http"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"k8s.io/client-go/rest"
)

// requestsMetric is the API server's own count of what it was asked.
const requestsMetric = "apiserver_request_total"

// Writes counts the successful writes of a resource, subresources included, since the API server started. It is the
// API server that counts, for all clients and namespaces: on a shared control plane, no other test may write the resource meanwhile.
func (c *Cluster) Writes(t *testing.T, resource string) int {
	t.Helper()
	return c.count(t, resource, http.MethodPost, http.MethodPut, http.MethodPatch, "APPLY", http.MethodDelete)
}

// Patches counts only the successful patches of a resource, subresources included: that is how an operator writes the
// objects that it handles.
func (c *Cluster) Patches(t *testing.T, resource string) int {
	t.Helper()
	return c.count(t, resource, http.MethodPatch)
}

// Lists counts the lists of a resource.
func (c *Cluster) Lists(t *testing.T, resource string) int {
	t.Helper()
	return c.count(t, resource, "LIST")
}

func (c *Cluster) count(t *testing.T, resource string, verbs ...string) int {
	t.Helper()
	families := c.metrics(t)
	total := 0.0
	for _, metric := range families[requestsMetric].GetMetric() {
		labels := labelsOf(metric)
		if labels["resource"] != resource || !strings.HasPrefix(labels["code"], "2") {
			continue
		}
		for _, verb := range verbs {
			if labels["verb"] == verb {
				total += metric.GetUntyped().GetValue()
			}
		}
	}
	return int(total)
}

func labelsOf(metric *dto.Metric) map[string]string {
	labels := map[string]string{}
	for _, pair := range metric.GetLabel() {
		labels[pair.GetName()] = pair.GetValue()
	}
	return labels
}

func (c *Cluster) metrics(t *testing.T) map[string]*dto.MetricFamily {
	t.Helper()
	browser, err := rest.HTTPClientFor(c.Config)
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.Config.Host+"/metrics", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := browser.Do(request)
	if err != nil {
		t.Fatalf("read the API server's metrics: %v", err)
	}
	defer func() { _ = answer.Body.Close() }()
	// The API server has thousands of metrics; only the lines of this one are parsed.
	var wanted bytes.Buffer
	for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
		if bytes.HasPrefix(lines.Bytes(), []byte(requestsMetric+"{")) {
			wanted.Write(append(lines.Bytes(), '\n'))
		}
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(&wanted)
	if err != nil {
		t.Fatalf("parse the API server's metrics: %v", err)
	}
	return families
}
