package virtual_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/test/fixture"
)

// Where another replica has written the record since it was read, the intent is not stored and nothing is called: the handler begins again
// from what the other one has recorded.
func TestAnOvertakenIntentCallsNothing(t *testing.T) {
	ran := &fixture.Trail{}
	virtually(t, fixture.NewLog(t), func(op *einmal.Operator) {
		einmal.For[fixture.Widget](op).OnCreate("make", func(ctx context.Context, c *einmal.Change[fixture.Widget]) error {
			if c.Attempt == 1 {
				return errors.New("not yet")
			}
			_, err := einmal.Effect(ctx, c, "account", einmal.RecoverByKey(func(context.Context, string) (fixture.Account, error) {
				return fixture.Account{Number: 7}, ran.Run("open in attempt " + strings.Repeat("I", c.Attempt))
			}))
			return err
		})
	}, func(t *testing.T, w *virtualWorld) {
		rival := false
		w.Server.Intercept(func(answer http.ResponseWriter, r *http.Request, next http.Handler) {
			if !rival && writes(t, r, "intent") {
				rival = true
				one := widgetNamed("one")
				fixture.Must(t, w.User.Get(t.Context(), client.ObjectKeyFromObject(one), one))
				record := strings.Replace(one.Status.Records.Records[fixture.Identity], `"attempts":1`, `"attempts":2`, 1)
				change := client.RawPatch(types.MergePatchType, []byte(`{"status":{"records":{"`+fixture.Identity+`":`+strconv.Quote(record)+`}}}`))
				fixture.Must(t, w.User.Status().Patch(t.Context(), one, change, client.FieldOwner("rival")))
			}
			next.ServeHTTP(answer, r)
		})
		fixture.Must(t, w.User.Create(t.Context(), widgetNamed("one")))
		w.Pass(10 * time.Minute)
	})
	if got := ran.All(); len(got) != 1 || got[0] != "open in attempt III" {
		t.Errorf("called: %q, want one call, in the attempt after those of the other replica", got)
	}
}

// writes reports whether a request is a patch with these words.
func writes(t *testing.T, r *http.Request, words string) bool {
	t.Helper()
	if r.Method != http.MethodPatch {
		return false
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Error(err)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return bytes.Contains(body, []byte(words))
}
