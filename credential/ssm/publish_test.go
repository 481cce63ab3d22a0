package ssm_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsssm "github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/smithy-go/middleware"

	"github.com/einmal-operators/einmal/credential"
	"github.com/einmal-operators/einmal/credential/ssm"
)

// SSM overwrites unconditionally. A writer that is frozen between its look at the copy and its write sees by the version what it has overwritten,
// and puts a later generation back. What only the same generation was written over stays.
func TestAFrozenWriterPutsBackWhatItOverwrites(t *testing.T) { //nolint:gocognit // One story, told row by row.
	t.Parallel()
	for called, row := range map[string]struct {
		between []int
		want    int
		err     error
	}{
		"a later generation in between":       {[]int{3}, 3, credential.ErrSuperseded},
		"two later generations in between":    {[]int{3, 4}, 4, credential.ErrSuperseded},
		"the same generation in between":      {[]int{2}, 2, nil},
		"nothing in between":                  {nil, 2, nil},
		"a deletion and another of that name": {[]int{0, 3}, 3, credential.ErrSuperseded},
	} {
		t.Run(called, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.none(w.store.Publish(t.Context(), name, owner(), record(1)))
			meanwhile := sync.OnceFunc(func() {
				for _, generation := range row.between {
					if generation == 0 {
						_, err := w.client.DeleteParameter(t.Context(), &awsssm.DeleteParameterInput{Name: aws.String(path)})
						w.none(err)
						continue
					}
					w.none(w.store.Publish(t.Context(), name, owner(), record(generation)))
				}
			})
			late, err := ssm.New(ssm.Options{
				Prefix: "/lab/tenants", Limits: ssm.NewLimits(10000, 10000), Client: awsssm.New(w.client.Options(), beforeWrites(meanwhile)),
			})
			w.none(err)
			if err := late.Publish(t.Context(), name, owner(), record(2)); !errors.Is(err, row.err) {
				t.Errorf("Publish returned %v, want %v", err, row.err)
			}
			if found, err := w.read(); err != nil || found.Copy != row.want {
				t.Errorf("readers get generation %d, want %d: %v", found.Copy, row.want, err)
			}
		})
	}
}

// beforeWrites does something before each PutParameter is sent.
func beforeWrites(do func()) func(*awsssm.Options) {
	return func(options *awsssm.Options) {
		options.APIOptions = append(options.APIOptions, func(stack *middleware.Stack) error {
			return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("Frozen",
				func(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
					if _, writes := in.Parameters.(*awsssm.PutParameterInput); writes {
						do()
					}
					return next.HandleInitialize(ctx, in)
				}), middleware.Before)
		})
	}
}
