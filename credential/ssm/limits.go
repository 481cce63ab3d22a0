package ssm

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awsssm "github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/smithy-go/middleware"
	"golang.org/x/time/rate"
)

// The rates of DefaultLimits, in requests a second. AWS allows 40 reads a second by default, to an account in a region and all that is in it:
// half is left to others. Of writes it allows far fewer; its quotas are to be looked up for an account that has more.
const (
	DefaultReads  = 20
	DefaultWrites = 3
)

// readBurst is how many reads may come at once. Writes come one by one.
const readBurst = 10

// How often a request is tried. The SDK tries three times what it takes for passing; TooManyUpdates, which tells of several writers of one
// parameter, it does not try again unless told.
const (
	attempts           = 5
	codeTooManyUpdates = "TooManyUpdates"
)

// Limits keeps the rate of requests below what an account may do in a region. All stores of an account and a region share one, in a
// process; several processes share the account's rate, so give each its part.
type Limits struct{ reads, writes *rate.Limiter }

// NewLimits allows so many reads and writes a second: any request that the SDK sends counts, so one that it tries again counts again.
func NewLimits(reads, writes float64) *Limits {
	return &Limits{reads: rate.NewLimiter(rate.Limit(reads), readBurst), writes: rate.NewLimiter(rate.Limit(writes), 1)}
}

// DefaultLimits are those for an account with the quotas that it has if nobody raises them.
func DefaultLimits() *Limits { return NewLimits(DefaultReads, DefaultWrites) }

// reading and writing are the options of a request.
func (l *Limits) reading(o *awsssm.Options) { limited(o, l.reads) }
func (l *Limits) writing(o *awsssm.Options) { limited(o, l.writes) }

// limited makes each attempt of a request wait for its turn, tries TooManyUpdates again, and keeps values out of the SDK's log.
func limited(o *awsssm.Options, limiter *rate.Limiter) {
	o.Retryer = retry.AddWithMaxAttempts(retry.AddWithErrorCodes(o.Retryer, codeTooManyUpdates), attempts)
	if o.ClientLogMode.IsRequestWithBody() {
		o.ClientLogMode |= aws.LogRequest
	}
	if o.ClientLogMode.IsResponseWithBody() {
		o.ClientLogMode |= aws.LogResponse
	}
	o.ClientLogMode.ClearRequestWithBody()
	o.ClientLogMode.ClearResponseWithBody()
	o.ClientLogMode.ClearRetries() // It tells errors, and AWS could quote what it was sent.
	o.APIOptions = append(o.APIOptions, func(stack *middleware.Stack) error {
		wait := middleware.FinalizeMiddlewareFunc("EinmalLimits",
			func(ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler) (middleware.FinalizeOutput, middleware.Metadata, error) {
				if err := limiter.Wait(ctx); err != nil {
					return middleware.FinalizeOutput{}, middleware.Metadata{}, fmt.Errorf("wait for a turn below the limit of requests: %w", err)
				}
				return next.HandleFinalize(ctx, in)
			})
		return stack.Finalize.Insert(wait, (*retry.Attempt)(nil).ID(), middleware.After) //nolint:wrapcheck // the SDK names the request
	})
}
