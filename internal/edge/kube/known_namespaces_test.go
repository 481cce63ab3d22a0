package kube

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/einmal-operators/einmal/internal/core/filter"
)

// Scenario 85 (docs/concepts/scenarios.md): a namespace counts as gone, so that its data can be removed, only after all namespaces have
// been listed. It does not while listing is forbidden, nor while the list is arriving.
func TestANamespaceIsGoneOnlyIfThatIsKnown(t *testing.T) {
	t.Parallel()
	served, err := filter.ParseNamespaces("named", "app-*")
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	namespaced, err := NewNamespacedCache(&rest.Config{Host: "http://127.0.0.1:1"}, cache.Options{}, served, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	gone := func(when string, want bool) {
		t.Helper()
		if namespaced.Gone("app-1") != want {
			t.Errorf("%s: gone is %t", when, !want)
		}
	}
	gone("at first", false)
	for range 3 {
		namespaced.reportForbiddenNamespaces(apierrors.NewForbidden(corev1.Resource("namespaces"), "", errors.New("no right")))
	}
	gone("while listing is forbidden", false)
	if told := strings.Count(log.String(), "cannot list or watch namespaces"); told != 1 {
		t.Errorf("%d messages about forbidden namespaces, want one", told)
	}
	namespaced.appear(t.Context(), "other")
	gone("while the list is arriving", false)
	namespaced.settle()
	gone("after the list has arrived", true)
}
