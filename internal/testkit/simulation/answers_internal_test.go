package simulation

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Faults answer as a real API server does: with its code, reason, message and headers.
func TestFaultsAnswerAsARealAPIServerDoes(t *testing.T) {
	asked := Request{Verb: verbUpdate, Resource: "services", Object: "default/one"}
	for _, test := range []struct {
		with    Kind
		code    int32
		reason  metav1.StatusReason
		message string
		after   string
	}{
		{Throttled, http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, "too many requests", "2"},
		{Overloaded, http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, "currently unable to handle the request", ""},
		{DeniedByWebhook, http.StatusForbidden, metav1.StatusReasonForbidden, `admission webhook "policy.example.com" denied the request`, ""},
		{OverQuota, http.StatusForbidden, metav1.StatusReasonForbidden, `services "default/one" is forbidden: exceeded quota`, ""},
		{Conflict, http.StatusConflict, metav1.StatusReasonConflict, "the object has been modified", ""},
		{Forbidden, http.StatusForbidden, metav1.StatusReasonForbidden, `User "operator" cannot update resource "services" in API group "" in the namespace "default"`, ""},
		{NotServed, http.StatusNotFound, metav1.StatusReasonNotFound, "could not find the requested resource", ""},
	} {
		t.Run(string(test.with), func(t *testing.T) {
			answer := (&answeredError{with: test.with}).answer(httptest.NewRequestWithContext(t.Context(), http.MethodPut, "/", http.NoBody), asked)
			defer func() { _ = answer.Body.Close() }()
			var status metav1.Status
			if err := json.NewDecoder(answer.Body).Decode(&status); err != nil {
				t.Fatal(err)
			}
			if answer.StatusCode != int(test.code) || status.Code != test.code || status.Reason != test.reason || !strings.Contains(status.Message, test.message) {
				t.Errorf("the answer is %d with %d %s %q", answer.StatusCode, status.Code, status.Reason, status.Message)
			}
			if after := answer.Header.Get("Retry-After"); after != test.after {
				t.Errorf("Retry-After is %q, want %q", after, test.after)
			}
		})
	}
}

// ParseSchedule reads every kind of fault, so that each schedule of a report can be played again.
func TestEveryKindOfFaultIsReadBack(t *testing.T) {
	for kind, pointed := range Kinds() {
		fault := Fault{Kind: kind}
		if pointed {
			fault.At = Point{What: "get services default/one by make", N: 1}
		}
		read, err := ParseSchedule(fault.String())
		if err != nil || len(read) != 1 || read[0] != fault {
			t.Errorf("%s is read back as %v: %v", fault, read, err)
		}
	}
}
