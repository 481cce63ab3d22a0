package simulation

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal/internal/testkit/apiserver"
)

// AnotherHome is the namespace in which the other operator of TwoOperators keeps its state. It is on an API server of its own, so that the
// operator under test does not handle that state as an object of a user.
const AnotherHome = "another-operator"

// startAnotherHome starts the API server that has AnotherHome.
func (w *World) startAnotherHome() error {
	if w.anotherHome != nil {
		return nil // It was started before, and keeps the state.
	}
	home, err := apiserver.New(apiserver.WithClock(w.now))
	if err != nil {
		return fmt.Errorf("start the API server of the other operator: %w", err)
	}
	w.anotherHome = home
	user, err := client.New(home.Config(), client.Options{})
	if err == nil {
		err = user.Create(context.Background(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: AnotherHome}})
	}
	if err != nil {
		return fmt.Errorf("create the namespace of the other operator: %w", err)
	}
	return nil
}

// ofAnother sends the requests of the other operator about AnotherHome to the API server that has it.
func (w *World) ofAnother(next http.RoundTripper) http.RoundTripper {
	home := w.anotherHome.Config().Transport
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		if strings.Contains(r.URL.Path+"/", "/namespaces/"+AnotherHome+"/") {
			return home.RoundTrip(r)
		}
		return next.RoundTrip(r)
	})
}
