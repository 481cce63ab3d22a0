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

// Scenario 85: that a namespace is gone, so that what is kept of it can go too, is not concluded before all that there are have been
// listed: not where that is refused, nor while the list arrives when it is allowed.
func TestANamespaceIsGoneOnlyIfThatIsKnown(t *testing.T) {
	t.Parallel()
	served, err := filter.ParseNamespaces("named", "app-*")
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	spaces, err := NewSpaces(&rest.Config{Host: "http://127.0.0.1:1"}, cache.Options{}, served, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	gone := func(when string, want bool) {
		t.Helper()
		if spaces.Gone("app-1") != want {
			t.Errorf("%s: gone is %t", when, !want)
		}
	}
	gone("at first", false)
	for range 3 {
		spaces.mayNotSurvey(apierrors.NewForbidden(corev1.Resource("namespaces"), "", errors.New("no right")))
	}
	gone("when nobody may tell", false)
	if told := strings.Count(log.String(), "may not list and watch namespaces"); told != 1 {
		t.Errorf("it is told %d times that namespaces may not be listed, want once", told)
	}
	spaces.appear(t.Context(), "other")
	gone("while the list arrives", false)
	spaces.settle()
	gone("when it has arrived", true)
}
