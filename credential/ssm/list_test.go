package ssm_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/ssm/types"

	"github.com/einmal-operators/einmal/awslab"
	"github.com/einmal-operators/einmal/credential"
	"github.com/einmal-operators/einmal/credential/ssm"
)

// All that is below a name is listed, whatever number of pages it takes, and nothing of a longer name.
func TestWhatIsBelowANameIsListed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var want []string
	for generation := range 12 {
		below := "web/db/g" + string(rune('a'+generation))
		want = append(want, below)
		w.plant(strings.TrimSuffix(path, name)+"below/"+below, types.ParameterTypeString, "x")
	}
	w.plant(strings.TrimSuffix(path, name)+"below-zero/web/db", types.ParameterTypeString, "x")
	found, err := w.store.Below(t.Context(), "below")
	if err != nil || !slices.Equal(found, want) {
		t.Errorf("%v, %v, want %v", found, err, want)
	}
	w.lab.Fail("GetParametersByPath", awslab.Fault{Code: "AccessDeniedException"})
	if found, err := w.store.Below(t.Context(), "below"); err == nil || len(found) > 0 || !strings.Contains(err.Error(), "allow it") {
		t.Errorf("without the right: %v, %v", found, err)
	}
}

// An account has room for so many parameters of a tier. That there is no more says so, and another tier has room of its own.
func TestAFullAccountIsTold(t *testing.T) {
	t.Parallel()
	for tier, fits := range map[string]bool{"": false, "Standard": false, "Advanced": true, "Intelligent-Tiering": true} {
		w := newWorld(t, func(o *ssm.Options) { o.Tier = tier })
		w.lab.Adjust(func(o *awslab.Options) { o.MaxParameters = 1 })
		w.plant("/other", types.ParameterTypeString, "x")
		err := w.store.Create(t.Context(), name, owner(), record(1))
		if (err == nil) != fits || !fits && !errors.Is(err, ssm.ErrQuota) || errors.Is(err, credential.ErrExists) {
			t.Errorf("tier %q: %v", tier, err)
		}
		if fits {
			w.none(w.store.Publish(t.Context(), name, owner(), record(1)))
		}
	}
	if _, err := ssm.New(ssm.Options{Client: newWorld(t).client, Prefix: "/lab", Tier: "Cheap"}); err == nil {
		t.Error("a tier that is none is taken")
	}
}
