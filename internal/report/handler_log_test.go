package report

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/einmal-operators/einmal/internal/core/redact"
)

const hidden = "hunter22"

type login struct {
	User, Password string
	More           *login
}

type redacting struct{ text string }

// LogValue is what is logged of it.
func (r redacting) LogValue() slog.Value { return slog.StringValue("password=" + r.text) }

// Issue: secrets are redacted in logs, whatever the format and the value.
func TestSecretsDoNotGetThroughTheLogOfAHandler(t *testing.T) {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "x"}, Data: map[string][]byte{"a": []byte(hidden)}}
	free := &unstructured.Unstructured{Object: map[string]any{"kind": "Secret", "metadata": map[string]any{"namespace": "default", "name": "x"}, "data": hidden}}
	for _, test := range []struct {
		value      any
		text, json string
	}{
		{"dial postgres://app:" + hidden + "@db", `value="dial postgres://app:***@db"`, `"value":"dial postgres://app:***@db"`},
		{errors.New("password=" + hidden), `value="password=***"`, `"value":"password=***"`},
		{secret, `value="Secret default/x"`, `"value":"Secret default/x"`},
		{*secret, `value="Secret default/x"`, `"value":"Secret default/x"`},
		{free, `value="Secret default/x"`, `"value":"Secret default/x"`},
		{secret.Data, `value=***`, `"value":"***"`},
		{[]byte("token: Abc-" + hidden), `value="token: ***"`, `"value":"token: ***"`},
		{login{User: "app", Password: hidden}, `\"Password\":***`, `\"Password\":***`},
		{login{User: "app", More: &login{Password: hidden}}, `\"Password\":***`, `\"Password\":***`},
		{redacting{hidden}, `value="password=***"`, `"value":"password=***"`},
		{slog.GroupValue(slog.String("token", hidden), slog.Int("n", 3)), `value.token=*** value.n=3`, `"value":{"token":"***","n":3}`},
		{3, "value=3", `"value":3`},
		{time.Second, "value=1s", `"value":1000000000`},
		{map[string]int{"a": 1}, "value=map[a:1]", `"value":{"a":1}`},
		{(*corev1.Secret)(nil), "value=", `"value":null`},
		{nil, "value=<nil>", `"value":null`},
	} {
		var text, json strings.Builder
		for _, handler := range []slog.Handler{slog.NewTextHandler(&text, nil), slog.NewJSONHandler(&json, nil)} {
			redactor := redact.New()
			log := slog.New(&handlerLog{next: handler, clean: cleaner{redactor: redactor, text: func(text string) string { return redactor.Text(text) }}})
			log.Info("said", "value", test.value)
			log.With("value", test.value).Info("said")
			log.WithGroup("").WithGroup("g").Info("said", "api-key", test.value)
		}
		for got, want := range map[string]string{text.String(): test.text, json.String(): test.json} {
			if strings.Contains(got, hidden) || strings.Count(got, want) < 2 {
				t.Errorf("%T: want %s twice, and no secret:\n%s", test.value, want, got)
			}
		}
	}
}
