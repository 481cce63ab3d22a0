package credential_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/einmal-operators/einmal/credential"
)

// Issue: a password shows itself in no form in which values are written by accident, also not within another value.
func TestAPasswordHidesItself(t *testing.T) {
	t.Parallel()
	const hidden = "s3cretText"
	password := credential.NewPassword(hidden)
	record := credential.Record{Username: "app", Password: password}
	pointer := &record
	var log bytes.Buffer
	for _, handler := range []slog.Handler{slog.NewTextHandler(&log, nil), slog.NewJSONHandler(&log, nil)} {
		slog.New(handler).Info("made", "password", password, "record", record, "pointer", pointer)
	}
	encoded, err := json.Marshal(map[string]any{"a": password, "b": record, "c": []credential.Password{password}})
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := yaml.Marshal(record)
	if err != nil {
		t.Fatal(err)
	}
	shown := []string{log.String(), string(encoded), string(manifest), fmt.Errorf("it is %v", password).Error()}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%T"} {
		shown = append(shown, fmt.Sprintf(verb, password), fmt.Sprintf(verb, record), fmt.Sprintf(verb, pointer))
	}
	for _, form := range []string{hidden, fmt.Sprintf("%x", hidden), strings.Trim(fmt.Sprintf("%d", []byte(hidden)), "[]")} {
		if text := strings.Join(shown, "\n"); strings.Contains(text, form) {
			t.Errorf("it shows itself as %s:\n%s", form, text)
		}
	}
	if password.Reveal() != hidden || password.IsZero() || !(credential.Password{}).IsZero() {
		t.Error("it does not give what it hides")
	}
	var back credential.Record
	if err := json.Unmarshal([]byte(`{"Password":"***"}`), &back); err == nil {
		t.Error("the mask is taken for a password")
	}
}

func TestGeneratedPasswordsAreLongAndDiffer(t *testing.T) {
	t.Parallel()
	seen, letters := map[string]bool{}, map[rune]bool{}
	for range 1000 {
		password, err := credential.Generate()
		if err != nil {
			t.Fatal(err)
		}
		text := password.Reveal()
		seen[text] = true
		for _, letter := range text {
			letters[letter] = true
		}
		if len(text) != 32 {
			t.Fatalf("%d letters", len(text))
		}
	}
	if len(seen) != 1000 || len(letters) != 62 {
		t.Errorf("%d passwords of %d letters, want 1000 of 62", len(seen), len(letters))
	}
}
