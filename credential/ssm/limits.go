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

// The rates of DefaultLimits, in requests a second.
const (
	// DefaultReads is half of the 40 reads a second that AWS allows an account in a region by default. The other half is for other clients.
	DefaultReads = 20
	// DefaultWrites is below the writes a second that AWS allows by default. AWS allows far fewer writes than reads. For an account with higher
	// quotas, use NewLimits.
	DefaultWrites = 3
)

// readBurst is the maximum number of reads at once. Writes are sent one by one.
const readBurst = 10

// attempts is the maximum number of attempts of a request; the default of the SDK is three. codeTooManyUpdates is the error for several writers of
// one parameter, which the SDK does not retry by default.
const (
	attempts           = 5
	codeTooManyUpdates = "TooManyUpdates"
)

// Limits limits the rate of requests to an account in a region. Use one Limits for all stores of an account and a region in a process. Several
// processes share the account's quota, so give each process a part of it.
type Limits struct{ reads, writes *rate.Limiter }

// NewLimits returns Limits with these rates, in requests a second. Each attempt of the SDK counts, including retries.
func NewLimits(reads, writes float64) *Limits {
	return &Limits{reads: rate.NewLimiter(rate.Limit(reads), readBurst), writes: rate.NewLimiter(rate.Limit(writes), 1)}
}

// DefaultLimits returns Limits for an account with the default quotas: DefaultReads and DefaultWrites.
func DefaultLimits() *Limits { return NewLimits(DefaultReads, DefaultWrites) }

// reading and writing are the options of a request.
func (l *Limits) reading(o *awsssm.Options) { limited(o, l.reads) }
func (l *Limits) writing(o *awsssm.Options) { limited(o, l.writes) }

// limited makes each attempt of a request wait for the rate limit, retries TooManyUpdates, and keeps values out of the SDK's log.
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
	o.ClientLogMode.ClearRetries() // It logs errors, and AWS could quote the request in them.
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
