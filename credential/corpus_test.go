package credential_test

import (
	"bytes"
	"fmt"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/einmal-operators/einmal/credential"
	"github.com/einmal-operators/einmal/internal/testkit/apiserver"
)

// storedSecrets contains the Secrets of the records of corpus.
const storedSecrets = "testdata/secrets.yaml"

// corpus are records with each kind of overlap.
func corpus() []credential.Record {
	var records []credential.Record
	for i, overlap := range []time.Duration{0, credential.NoOverlap, 36 * time.Hour} {
		records = append(records, credential.Record{
			Username: "app", Password: credential.NewPassword(fmt.Sprint("password-of-a-test-", i+1)), Generation: i + 1, Request: fmt.Sprint("request-", i),
			Created: time.Date(2026, 1, 2, 3, 4, i, 0, time.UTC), Overlap: overlap,
		})
	}
	return records
}

// Secrets outlive every process that writes them. A change of their form must be intended: processes of another release could not read them.
func TestTheFormOfSecretsStays(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, api := apiserver.Start(t)
		store := credential.Secrets{Client: api, Namespace: "default"}
		for _, record := range corpus() {
			if err := store.Create(t.Context(), "app-db", testOwner(), record); err != nil {
				t.Fatal(err)
			}
		}
		if err := store.Publish(t.Context(), "app-db", testOwner(), corpus()[1]); err != nil {
			t.Fatal(err)
		}
		var written corev1.SecretList
		if err := api.List(t.Context(), &written); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, secret := range written.Items {
			got = append(got, document(t, secret))
		}
		if diff := cmp.Diff(documents(t), got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", storedSecrets, diff)
		}
	})
}

// document is what a writer decides of a Secret.
func document(t *testing.T, secret corev1.Secret) string {
	t.Helper()
	kept := corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Name: secret.Name, Namespace: secret.Namespace, Labels: secret.Labels, Annotations: secret.Annotations, OwnerReferences: secret.OwnerReferences,
		},
		Type: secret.Type, Immutable: secret.Immutable, StringData: map[string]string{},
	}
	for key, value := range secret.Data {
		kept.StringData[key] = string(value)
	}
	text, err := yaml.Marshal(kept)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestStoredSecretsAreRead(t *testing.T) {
	t.Parallel()
	_, api := apiserver.Start(t)
	for _, text := range documents(t) {
		secret := &corev1.Secret{}
		if err := yaml.Unmarshal([]byte(text), secret); err != nil {
			t.Fatal(err)
		}
		if err := api.Create(t.Context(), secret); err != nil {
			t.Fatal(err)
		}
	}
	want := credential.Found{Records: corpus(), Published: 2, Copy: 2, Since: time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)}
	found, err := credential.Secrets{Client: api, Namespace: "default"}.Read(t.Context(), "app-db", testOwner(), 1)
	if diff := cmp.Diff(want, found, cmp.Comparer(func(a, b credential.Password) bool { return a == b })); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func documents(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(storedSecrets)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for part := range bytes.SplitSeq(text, []byte("---\n")) {
		all = append(all, string(part))
	}
	return all
}
