package cluster

import "testing"

// Requests are those for the resource, whatever their verb and their answer. Watches and lists are not for single objects.
func TestRequestsForAResourceAreAddedUp(t *testing.T) {
	const metrics = `# TYPE apiserver_request_total counter
apiserver_request_total{code="200",group="bench.example.com",resource="gadgets",subresource="",verb="PATCH"} 20
apiserver_request_total{code="409",group="bench.example.com",resource="gadgets",subresource="status",verb="PATCH"} 3
apiserver_request_total{code="200",group="bench.example.com",resource="recordedgadgets",subresource="",verb="PATCH"} 100
apiserver_request_total{code="200",group="bench.example.com",resource="gadgets",subresource="",verb="WATCH"} 5
apiserver_request_total{code="201",group="bench.example.com",resource="gadgets",subresource="",verb="POST"} 1e+01
apiserver_request_duration_seconds_count{resource="gadgets",verb="PATCH"} 1000
`
	got, err := count([]byte(metrics), "gadgets")
	if err != nil || got != 33 {
		t.Errorf("got %d, %v; want 33", got, err)
	}
}
