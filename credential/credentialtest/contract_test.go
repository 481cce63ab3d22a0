package credentialtest_test

import (
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal/credential"
	"github.com/einmal-operators/einmal/credential/credentialtest"
	"github.com/einmal-operators/einmal/internal/testkit/apiserver"
)

// A store creates only, overwrites nothing but the copy for readers, and tells whose things are.
func TestSecretsAreAStore(t *testing.T) {
	t.Parallel()
	credentialtest.Contract(t, func(t *testing.T) credentialtest.Subject {
		t.Helper()
		_, api := apiserver.Start(t)
		return credentialtest.Subject{
			Store: credential.Secrets{Client: api, Namespace: "default"}, Name: "contract",
			Spoil: func(t *testing.T, generation int, owner credential.Owner) {
				t.Helper()
				spoil(t, api, generation, owner)
			},
		}
	})
}

func spoil(t *testing.T, api client.Client, generation int, owner credential.Owner) {
	t.Helper()
	name := "contract"
	if generation > 0 {
		name += ".g" + strconv.Itoa(generation)
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Annotations: map[string]string{credential.OwnerAnnotation: owner.String()}},
		Type:       corev1.SecretTypeBasicAuth, StringData: map[string]string{"username": "app", "password": ""},
	}
	if err := api.Delete(t.Context(), secret.DeepCopy()); err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	if err := api.Create(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
}
