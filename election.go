package einmal

import (
	"cmp"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/einmal-operators/einmal/internal/edge/kube"
	"github.com/einmal-operators/einmal/internal/engine"
)

// elect makes the manager one of several replicas, of which one acts at a time. What that manager sends goes through a
// fence, which a replica that does not hold the Lease cannot pass with a change. The Lease is in the namespace home.
func (op *Operator) elect(home string, config *rest.Config, options *ctrl.Options, pace kube.Pace) error {
	if home == "" {
		return errors.New("leader election: no namespace is known for the Lease; outside of a pod, name one with " +
			"einmal.StateNamespace or --state-namespace, or run one replica with --leader-elect=false")
	}
	lease, err := kube.NewLeadership(config, types.NamespacedName{Namespace: home, Name: op.settings.Identity}, pace)
	if err != nil {
		return err
	}
	lease.Failed = func(err error) {
		if !op.problems.Report(op.settings.Log, err) {
			op.settings.Log.Warn("cannot read the Lease, will retry", "lease", lease.Describe(), "error", err)
		}
	}
	config.Wrap(lease.Fence)
	options.LeaderElection, options.LeaderElectionReleaseOnCancel = true, true
	options.LeaderElectionResourceLockInterface = lease
	options.LeaseDuration, options.RenewDeadline, options.RetryPeriod = &pace.Lasts, &pace.Deadline, &pace.Retry
	op.lease = lease
	return nil
}

// join lets the operator take part in the election of its manager.
func (op *Operator) join(driver *engine.Operator, mgr manager.Manager) error {
	driver.Election = engine.Election{Elected: mgr.Elected(), Lease: op.lease}
	if op.lease == nil {
		return nil
	}
	op.lease.Idle(driver.Idle)
	driver.Election.Standby = &engine.Standby{Operator: driver}
	if err := mgr.Add(driver.Election.Standby); err != nil {
		return fmt.Errorf("add the standby to the manager: %w", err)
	}
	return nil
}

// Elect lets package einmaltest run several replicas of the operator. The type of its argument is internal: nobody else
// can call it.
func (op *Operator) Elect(in engine.Elected) error {
	return op.elect(cmp.Or(op.settings.Home, in.Home), in.Config, in.Options, kube.NewPace(max(in.Slower, 1)))
}
