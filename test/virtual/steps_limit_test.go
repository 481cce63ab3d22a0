package virtual_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/einmaltest"
	"github.com/einmal-operators/einmal/test/fixture"
)

// Items that run at the same time do not go over the limit of the record together: those for which there is no room fail.
func TestConcurrentItemsKeepTheLimitOfTheRecord(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		ran := &fixture.Trail{}
		w.Start(func(*einmaltest.Process) *einmal.Operator {
			op := fixture.NewOperator()
			einmal.For[fixture.Widget](op).OnCreate("make", func(ctx context.Context, c *einmal.Change[fixture.Widget]) error {
				items := make([]string, 200)
				for i := range items {
					items[i] = fmt.Sprintf("%0250d", i)
				}
				return einmal.Permanent(einmal.Each(ctx, c, items, strings.Clone, func(_ context.Context, item string) error {
					<-time.After(time.Second)
					return ran.Run(item)
				}))
			}, einmal.Concurrency(200))
			return op
		})
		w.AllowUnfinished("make")
		w.Advance(time.Second)
		w.Create(fixture.NewWidget("one"))
		w.Advance(time.Minute)
		const fit = 32 << 10 / 270
		if done := len(ran.All()); done < fit-5 || done > fit+5 {
			w.Errorf("%d items ran, but about %d fit", done, fit)
		}
	})
}
