package ssm_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/config"
	awsssm "github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/ssm/types"

	"github.com/einmal-operators/einmal/awslab"
	"github.com/einmal-operators/einmal/credential"
	"github.com/einmal-operators/einmal/credential/credentialtest"
	"github.com/einmal-operators/einmal/credential/ssm"
)

// world is a store in an AWS of its own.
type world struct {
	*testing.T
	lab    *awslab.Lab
	client *awsssm.Client
	store  *ssm.Store
}

// newWorld makes one, with what a test wants else of the store and of the SDK.
func newWorld(t *testing.T, change ...any) world {
	t.Helper()
	lab := awslab.New(awslab.Options{})
	server := httptest.NewServer(lab)
	t.Cleanup(func() { server.Close(); lab.Close() })
	sdk := awslab.Config(server.URL)
	sdk.Retryer = func() aws.Retryer {
		return retry.NewStandard(func(o *retry.StandardOptions) { o.MaxBackoff = time.Millisecond })
	}
	options := ssm.Options{Prefix: "/lab/tenants", Limits: ssm.NewLimits(10000, 10000)}
	for _, do := range change {
		switch do := do.(type) {
		case func(*aws.Config):
			do(&sdk)
		case func(*ssm.Options):
			do(&options)
		}
	}
	options.Client = awsssm.NewFromConfig(sdk)
	store, err := ssm.New(options)
	if err != nil {
		t.Fatal(err)
	}
	return world{t, lab, options.Client, store}
}

func owner() credential.Owner {
	return credential.Owner{Operator: "tenants.einmal.dev@lab", Name: "acme/shop"}
}

const (
	name   = "acme/shop/db"
	path   = "/lab/tenants/acme/shop/db"
	secret = "s3cret-s3cret-s3cret"
)

func record(generation int) credential.Record {
	return credential.Record{
		Username: "app", Password: credential.NewPassword(secret), Generation: generation, Created: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
	}
}

// plant writes a value past the store.
func (w world) plant(at string, kind types.ParameterType, value string) {
	w.Helper()
	_, err := w.client.PutParameter(w.Context(), &awsssm.PutParameterInput{Name: &at, Value: &value, Type: kind, Overwrite: aws.Bool(true)})
	if err != nil {
		w.Fatal(err)
	}
}

// get reads a parameter past the store.
func (w world) get(at string) *types.Parameter {
	w.Helper()
	found, err := w.client.GetParameter(w.Context(), &awsssm.GetParameterInput{Name: &at, WithDecryption: aws.Bool(true)})
	if err != nil {
		w.Fatal(err)
	}
	return found.Parameter
}

func (w world) read() (credential.Found, error) {
	return w.store.Read(w.Context(), name, owner(), 1)
}

// none expects no error.
func (w world) none(errs ...error) {
	w.Helper()
	for _, err := range errs {
		if err != nil {
			w.Fatal(err)
		}
	}
}

// once is a credential in the store, and counts what is generated.
func (w world) once(generated *int) credential.Once {
	return credential.Once{Store: w.store, Name: name, Owner: owner(), Username: "app", Generate: func() (credential.Password, error) {
		*generated++
		return credential.Generate()
	}}
}

// The store creates only, overwrites nothing but the copy for readers, and tells whose things are.
func TestSSMIsAStore(t *testing.T) {
	t.Parallel()
	credentialtest.Contract(t, func(t *testing.T) credentialtest.Subject {
		t.Helper()
		return newWorld(t).subject("contract")
	})
}

func (w world) subject(under string) credentialtest.Subject {
	return credentialtest.Subject{Store: w.store, Name: under, Spoil: func(t *testing.T, generation int, of credential.Owner) {
		t.Helper()
		at := w.store.Path(under)
		if generation > 0 {
			at += fmt.Sprint("/g", generation)
		}
		w.plant(at, types.ParameterTypeSecureString, fmt.Sprintf(`{"v":1,"owner":%q,"username":"app","password":"","generation":%d}`, of, generation))
	}}
}

// The emulator proves our protocol, not AWS. The same contract on a real account, where one is given.
func TestSSMIsAStoreOnARealAccount(t *testing.T) {
	t.Parallel()
	prefix := os.Getenv("EINMAL_AWS_PREFIX")
	if os.Getenv("EINMAL_AWS_TESTS") != "1" || prefix == "" {
		fmt.Fprintln(os.Stderr, "NOT TRIED ON A REAL AWS ACCOUNT: set EINMAL_AWS_TESTS=1 and EINMAL_AWS_PREFIX=/some/path to do so.")
		return
	}
	sdk, err := config.LoadDefaultConfig(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	client, limits := awsssm.NewFromConfig(sdk), ssm.DefaultLimits()
	credentialtest.Contract(t, func(t *testing.T) credentialtest.Subject {
		t.Helper()
		store, err := ssm.New(ssm.Options{Client: client, Prefix: prefix, Limits: limits})
		if err != nil {
			t.Fatal(err)
		}
		under := "contract-" + strings.ToLower(rand.Text())
		t.Cleanup(func() {
			mine := credential.Owner{Operator: "contract.einmal.dev", Namespace: "team", Name: "app"}
			if err := store.Delete(context.WithoutCancel(t.Context()), under, mine); err != nil {
				t.Errorf("delete what is below %s/%s by hand: %v", prefix, under, err)
			}
		})
		return world{T: t, client: client, store: store}.subject(under)
	})
}
