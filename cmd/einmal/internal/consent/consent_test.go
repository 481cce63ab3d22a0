package consent_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/einmal-operators/einmal/cmd/einmal/internal/consent"
)

func TestOnlyTheClusterNameIsConsent(t *testing.T) {
	for typed, want := range map[string]bool{
		"production\n": true, "production\r\n": true, "production": true,
		"": false, "\n": false, "yes\n": false, "y\n": false, "staging\n": false, "Production\n": false, "\nproduction\n": false,
	} {
		asked := ""
		err := consent.Ask(t.Context(), consent.Question{
			Cluster: "production", Terminal: true, In: strings.NewReader(typed), Prompt: func(text string) { asked += text },
		})
		if declined := (*consent.DeclinedError)(nil); (err == nil) != want || err != nil && !errors.As(err, &declined) {
			t.Errorf("%q: error %v, want consent %v", typed, err, want)
		}
		if !strings.Contains(asked, "(production)") {
			t.Errorf("the question %q does not name the cluster", asked)
		}
	}
}

func TestFlagIsRequiredWithoutATerminal(t *testing.T) {
	question := consent.Question{
		Cluster: "the prod", Option: "--yes-apply-to 'the prod'", In: strings.NewReader("the prod\n"),
		Prompt: func(string) { t.Error("asked without a terminal") },
	}
	var missing *consent.MissingError
	if err := consent.Ask(t.Context(), question); !errors.As(err, &missing) || !strings.Contains(err.Error(), question.Option) {
		t.Errorf("error %v does not name the flag", err)
	}
	question.Given = "the prod"
	if err := consent.Ask(t.Context(), question); err != nil {
		t.Errorf("error %v although the flag names the cluster", err)
	}
}

func TestAskReturnsWhenTheContextEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	silent, writer := io.Pipe()
	defer func() { _ = writer.Close() }()
	question := consent.Question{Cluster: "x", Terminal: true, In: silent, Prompt: func(string) { cancel() }}
	if err := consent.Ask(ctx, question); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want that of the context", err)
	}
}
