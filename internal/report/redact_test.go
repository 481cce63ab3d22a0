package report

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/einmal-operators/einmal/internal/core/object"
)

// writtenForms returns the value in the forms in which errors commonly contain it.
func writtenForms(t *testing.T, value string) map[string]string {
	t.Helper()
	encoded, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	raw := []byte(value)
	return map[string]string{
		"as it is": value, "without the newline": strings.TrimSpace(value), "quoted": strings.Trim(strconv.Quote(value), `"`),
		"JSON": strings.Trim(string(encoded), `"`), "percent-encoded": url.PathEscape(value), "hexadecimal": hex.EncodeToString(raw),
		"bytes": strings.Trim(fmt.Sprintf("%d", raw), "[]"), "base64": base64.StdEncoding.EncodeToString(raw), "base64 in URLs": base64.URLEncoding.EncodeToString(raw),
	}
}

// A handler of Secrets can change the Secret and then fail. Its error contains no value of the Secret before or after the change, in any form.
func TestAnErrorAboutASecretContainsNoValueFromBeforeOrAfterAnEdit(t *testing.T) {
	const before, after, added = "~~~<one>\n???", "~~~<two>\n", "???<three>\n" // Each of them is different in each form.
	data := func(value string) object.Body {
		return object.Body{"x": base64.StdEncoding.EncodeToString([]byte(value))}
	}
	given := object.Body{"data": data(before)}
	left := object.Body{"data": data(after), "stringData": object.Body{"y": added}}
	for name, value := range map[string]string{"before": before, "after": after, "added as text": added} {
		for form, written := range writtenForms(t, value) {
			original := fmt.Errorf("login with %s failed", written)
			err := newReported(t, "Secret").kind.RedactError(original, given, left)
			if want := strings.Replace(original.Error(), strings.TrimRight(written, "="), "***", 1); err.Error() != want {
				t.Errorf("%s, %s: %q, want %q", name, form, err, want)
			}
			if !errors.Is(err, original) {
				t.Errorf("%s, %s: errors.Is does not find the original error", name, form)
			}
		}
	}
}

func TestOnlyErrorsAboutSecretsAreSearchedForTheValuesOfTheObject(t *testing.T) {
	const text = "login with aHVudGVyMjI failed"
	body := object.Body{"data": object.Body{"x": "aHVudGVyMjI="}}
	for kind, want := range map[string]string{"Secret": "login with *** failed", "ConfigMap": text} {
		if err := newReported(t, kind).kind.RedactError(errors.New(text), body, nil); err.Error() != want {
			t.Errorf("%s: %q, want %q", kind, err, want)
		}
	}
	if err := newReported(t, "Secret").kind.RedactError(nil, body); err != nil {
		t.Errorf("no error became %q", err)
	}
}
