package einmal

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/einmal-operators/einmal/internal/edge/kube"
	"github.com/einmal-operators/einmal/internal/engine"
)

// elect makes the manager one of several replicas, of which one acts at a time. Requests of the manager pass a fence,
// which rejects writes while the replica does not hold the Lease. The Lease is in the namespace home.
func (op *Operator) elect(home string, config *rest.Config, options *ctrl.Options, pace kube.Pace) error {
	if home == "" {
		return errors.New("leader election: no namespace for the Lease; outside of a pod, set one with the option StateNamespace or " +
			"--state-namespace, or run a single replica, with RunOptions.SingleReplica or --leader-elect=false")
	}
	lease, err := kube.NewLeadership(config, types.NamespacedName{Namespace: home, Name: op.settings.Identity}, pace)
	if err != nil {
		return err
	}
	lease.Failed = func(err error) {
		if !op.problems.Report(op.settings.Log, err) {
			op.settings.Log.Warn("cannot use the Lease, will retry", "lease", lease.Describe(), "error", err)
		}
	}
	config.Wrap(lease.Fence)
	options.LeaderElection, options.LeaderElectionReleaseOnCancel = true, true
	options.LeaderElectionResourceLockInterface = lease
	options.LeaseDuration, options.RenewDeadline, options.RetryPeriod = &pace.Lasts, &pace.Deadline, &pace.Retry
	op.lease = lease
	return nil
}

// join connects the operator to the leader election of its manager.
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
