package ssm_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsssm "github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/ssm/types"
	"github.com/aws/smithy-go/logging"
	"github.com/google/go-cmp/cmp"

	"github.com/einmal-operators/einmal/awslab"
	"github.com/einmal-operators/einmal/credential"
	"github.com/einmal-operators/einmal/credential/ssm"
)

// Parameters have the tags that were asked for.
func TestAParameterHasTheTags(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(o *ssm.Options) { o.KeyID, o.Tags = "alias/tenants", map[string]string{"team": "a", "env": "lab"} })
	w.none(w.store.Create(t.Context(), name, owner(), record(1)), w.store.Publish(t.Context(), name, owner(), record(1)))
	for _, at := range []string{path, path + "/g1"} {
		tags, err := w.client.ListTagsForResource(t.Context(), &awsssm.ListTagsForResourceInput{ResourceType: types.ResourceTypeForTaggingParameter, ResourceId: &at})
		if err != nil || len(tags.TagList) != 2 {
			t.Errorf("%s has the tags %v: %v", at, tags, err)
		}
	}
	// An overwrite has no tags, as AWS does not take both, and leaves those that are there.
	w.none(w.store.Publish(t.Context(), name, owner(), record(2)))
	if got := w.get(path); got.Version != 2 {
		t.Errorf("it has version %d after an overwrite", got.Version)
	}
}

// One request while there are less than nine generations, of ten names at most; and no writes.
func TestASteadyCredentialIsOneReadAndNoWrite(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	generated := 0
	once := w.once(&generated)
	first, err := once.Ensure(t.Context())
	w.none(err)
	w.lab.Forget()
	for range 10 {
		again, err := once.Ensure(t.Context())
		w.none(err, w.store.Publish(t.Context(), name, owner(), first))
		if again != first {
			t.Error("it gives another record")
		}
	}
	if w.lab.Writes() != 0 || w.lab.Count("GetParameters") != 20 || generated != 1 || w.get(path+"/g1").Version != 1 {
		t.Errorf("%d generated; the journal is %v", generated, w.lab.Journal())
	}
	for generation := 2; generation <= 10; generation++ {
		w.none(w.store.Create(t.Context(), name, owner(), record(generation)))
	}
	w.lab.Forget()
	_, err = w.read()
	w.none(err)
	if got := w.lab.Count("GetParameters"); got != 2 {
		t.Errorf("ten generations are %d requests, want 2: %v", got, w.lab.Journal())
	}
}

// Only SSM's own word is absence. While anything else is wrong, nothing is generated and nothing is written.
func TestATroubledStoreIsNotAnEmptyOne(t *testing.T) {
	t.Parallel()
	for _, code := range []string{
		"AccessDeniedException", "KMSInvalidStateException", "InvalidKeyId", "InternalServerError", "ThrottlingException", "ValidationException", "TooManyUpdates",
	} {
		w := newWorld(t)
		generated := 0
		w.lab.Fail("", slices.Repeat([]awslab.Fault{{Code: code, Message: "no"}}, 5)...)
		_, err := w.once(&generated).Ensure(t.Context())
		if err == nil || credential.Blocked(err) || generated != 0 || w.lab.Writes() != 0 || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %d generated, %d writes: %v", code, generated, w.lab.Writes(), err)
		}
	}
	w := newWorld(t)
	generated := 0
	w.lab.Refuse(true)
	_, err := w.once(&generated).Ensure(t.Context())
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, canceled := w.once(&generated).Ensure(ended)
	if err == nil || generated != 0 || !errors.Is(canceled, context.Canceled) {
		t.Errorf("%d generated: %v; %v", generated, err, canceled)
	}
}

// Lost answers, and names that are not free yet, end with one version that all use.
func TestWhateverGetsLostThereIsOneVersion(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	generated := 0
	w.lab.Fail("PutParameter", awslab.Fault{Lost: true}, awslab.Fault{Code: "TooManyUpdates"}, awslab.Fault{Lost: true})
	first, err := w.once(&generated).Ensure(t.Context())
	if err != nil {
		first, err = w.once(&generated).Ensure(t.Context())
	}
	w.none(err)
	if got := w.get(path + "/g1"); got.Version != 1 || !strings.Contains(*got.Value, first.Password.Reveal()) || generated != 1 {
		t.Errorf("%d generated, version %d", generated, got.Version)
	}
	w.none(w.store.Delete(t.Context(), name, owner()))
	w.lab.Adjust(func(o *awslab.Options) { o.RecreateAfter = time.Hour })
	if _, err := w.once(&generated).Ensure(t.Context()); !errors.Is(err, credential.ErrUnsettled) {
		t.Errorf("a name that is not free yet: %v", err)
	}
	w.lab.Adjust(func(o *awslab.Options) { o.RecreateAfter = 0 })
	if _, err := w.once(&generated).Ensure(t.Context()); err != nil {
		t.Error(err)
	}
}

// The SDK does not try TooManyUpdates again, the store does, up to a bound, and stops with the context.
func TestTooManyUpdatesAreTriedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.lab.Fail("PutParameter", slices.Repeat([]awslab.Fault{{Code: "TooManyUpdates"}}, 4)...)
	w.none(w.store.Create(t.Context(), name, owner(), record(1)))
	w.lab.Fail("PutParameter", slices.Repeat([]awslab.Fault{{Code: "TooManyUpdates"}}, 50)...)
	w.lab.Forget()
	err := w.store.Create(t.Context(), name, owner(), record(2))
	if err == nil || w.lab.Writes() != 5 || !strings.Contains(err.Error(), "Limits") {
		t.Errorf("%d attempts: %v", w.lab.Writes(), err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
	defer cancel()
	if err := w.store.Create(ctx, name, owner(), record(2)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("with a context that has ended: %v", err)
	}
}

// Requests keep below the account's rate, those that are tried again too, and stores share it.
func TestRequestsKeepTheirRate(t *testing.T) {
	t.Parallel()
	limits := ssm.NewLimits(1000, 50)
	share := func(o *ssm.Options) { o.Limits = limits }
	one, two := newWorld(t, share), newWorld(t, share)
	one.lab.Fail("PutParameter", awslab.Fault{Code: "TooManyUpdates"})
	began := time.Now()
	one.none(one.store.Create(t.Context(), name, owner(), record(1)))
	two.none(two.store.Create(t.Context(), name, owner(), record(1)), two.store.Publish(t.Context(), name, owner(), record(1)))
	// Four writes: the first goes at once, and each other waits for its 20 ms.
	if took := time.Since(began); took < 55*time.Millisecond {
		t.Errorf("four writes took %s", took)
	}
}

// What is there without our mark, or is no credential, is not used, and never written over.
func TestWhatIsPlantedIsNeitherUsedNorReplaced(t *testing.T) {
	t.Parallel()
	kind := types.ParameterTypeSecureString
	good := fmt.Sprintf(`{"v":1,"owner":%q,"username":"app","password":%q,"generation":1,"request":"","created":"2026-01-02T03:04:05Z"}`, owner(), secret)
	for text, row := range map[string]struct {
		kind types.ParameterType
		want error
	}{
		"planted": {kind, credential.ErrConflict},
		"{}":      {kind, credential.ErrConflict},
		strings.Replace(good, "tenants.", "x.", 1): {kind, credential.ErrConflict},
		good: {types.ParameterTypeString, credential.ErrInvalid},
		strings.Replace(good, `"v":1`, `"v":2`, 1):                   {kind, credential.ErrInvalid},
		strings.Replace(good, secret, "", 1):                         {kind, credential.ErrInvalid},
		strings.Replace(good, `"app"`, `""`, 1):                      {kind, credential.ErrInvalid},
		strings.Replace(good, `"generation":1`, `"generation":2`, 1): {kind, credential.ErrInvalid},
	} {
		w := newWorld(t)
		w.plant(path+"/g1", row.kind, text)
		w.lab.Forget()
		_, err := w.read()
		generated := 0
		_, again := w.once(&generated).Ensure(t.Context())
		if !errors.Is(err, row.want) || !errors.Is(again, row.want) || generated != 0 || w.lab.Writes() != 0 || strings.Contains(err.Error(), secret) {
			t.Errorf("%s: %v; %d generated, %d writes", text, err, generated, w.lab.Writes())
		}
		err = w.store.Delete(t.Context(), name, owner())
		if conflict := errors.Is(err, credential.ErrConflict); conflict != errors.Is(row.want, credential.ErrConflict) {
			t.Errorf("%s: its deletion says %v", text, err)
		}
	}
	w := newWorld(t)
	w.plant(path, kind, "planted")
	if err := w.store.Publish(t.Context(), name, owner(), record(1)); !errors.Is(err, credential.ErrConflict) || *w.get(path).Value != "planted" {
		t.Errorf("publish over what is planted: %v", err)
	}
}

// What readers get goes first and the first generation last, so that a broken deletion can go on.
func TestADeletionGoesOnWhereItWasBrokenOff(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const last = 11
	for generation := 1; generation <= last; generation++ {
		w.none(w.store.Create(t.Context(), name, owner(), record(generation)))
	}
	w.none(w.store.Publish(t.Context(), name, owner(), record(last)))
	w.lab.Forget()
	w.lab.Fail("DeleteParameter", awslab.Fault{Resource: path + "/g5", Code: "AccessDeniedException"})
	err := w.store.Delete(t.Context(), name, owner())
	if err == nil || !strings.Contains(err.Error(), path+"/g5") || !strings.Contains(err.Error(), "allow") {
		t.Errorf("it says %v", err)
	}
	w.none(w.store.Delete(t.Context(), name, owner()))
	var got, want []string
	for _, call := range w.lab.Journal() {
		if call.Write {
			got = append(got, call.Resource)
		}
	}
	want = append(want, path)
	for _, generation := range []int{11, 10, 9, 8, 7, 6, 5, 5, 4, 3, 2, 1} {
		want = append(want, fmt.Sprint(path, "/g", generation))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("deleted (-want +got):\n%s", diff)
	}
}

// No value reaches the log of the SDK, whatever its log mode, or an error, even if AWS quotes it.
func TestNoPasswordIsTold(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	w := newWorld(t, func(sdk *aws.Config) {
		sdk.Logger = logging.NewStandardLogger(&log)
		sdk.ClientLogMode = aws.LogRequestWithBody | aws.LogResponseWithBody | aws.LogSigning | aws.LogRetries
	})
	w.none(w.store.Create(t.Context(), name, owner(), record(1)), w.store.Publish(t.Context(), name, owner(), record(1)))
	_, err := w.read()
	w.none(err)
	w.lab.Fail("PutParameter", awslab.Fault{Code: "ValidationException", Message: "Value '" + secret + "' is not valid"})
	err = w.store.Create(t.Context(), name, owner(), record(2))
	if err == nil || strings.Contains(err.Error(), secret) || !strings.Contains(err.Error(), "ValidationException") || !strings.Contains(err.Error(), path+"/g2") {
		t.Errorf("the error is %v", err)
	}
	if shown := log.String(); strings.Contains(shown, secret) || !strings.Contains(shown, "AmazonSSM.PutParameter") {
		t.Errorf("the log of the SDK has the password, or nothing:\n%s", shown)
	}
}

// Invalid arguments are rejected before AWS is called.
func TestMistakesAreToldAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, options := range []ssm.Options{
		{Prefix: "/tenants"}, {Client: w.client}, {Client: w.client, Prefix: "tenants"}, {Client: w.client, Prefix: "/tenants/"}, {Client: w.client, Prefix: "/AWS-x"},
	} {
		if _, err := ssm.New(options); err == nil || !strings.Contains(err.Error(), "Options.") {
			t.Errorf("%q: %v", options.Prefix, err)
		}
	}
	for _, bad := range []string{"", "/x", "x/", "a b", "x/g1", "g7"} {
		_, err := w.store.Read(t.Context(), bad, owner(), 1)
		if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%q", bad)) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	long := record(1)
	long.Request = strings.Repeat("x", 4096)
	if err := w.store.Create(t.Context(), name, owner(), long); err == nil || !strings.Contains(err.Error(), "shorter") {
		t.Errorf("more than 4 KB: %v", err)
	}
	if err := w.store.Create(t.Context(), name, owner(), record(0)); err == nil || len(w.lab.Journal()) != 0 {
		t.Errorf("generation 0: %v; %v", err, w.lab.Journal())
	}
}
