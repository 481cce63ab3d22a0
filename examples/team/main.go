// Team is an operator that uses every verb and every option once, each for what it is there for. Pages of the documentation
// quote it. For each Team it keeps an account, seats for its first members, and a roster.
package main

import (
	"context"
	"log/slog"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal"
)

type teamSpec struct {
	Title   string   `json:"title,omitempty"`
	Plan    string   `json:"plan,omitempty"` // trial, small or large
	Members []string `json:"members,omitempty"`
	Paused  bool     `json:"paused,omitempty"`
}

type teamStatus struct {
	einmal.Records `json:",inline"`

	Account    string             `json:"account,omitempty"`
	Title      string             `json:"title,omitempty"`
	Plan       string             `json:"plan,omitempty"`
	Seats      int                `json:"seats,omitempty"`
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

type team = einmal.Resource[teamSpec, teamStatus]

// change is what handlers of teams are given.
type change = einmal.Change[team]

func main() { operator().Main() }

// operator declares all of it. More options can be given.
func operator(more ...einmal.OperatorOption) *einmal.Operator {
	op := einmal.New("teams.example.com", append(options(), more...)...)
	teams := einmal.For[team](op, einmal.GVK("example.com", "v1", "Team"))
	declareActivities(op)
	declareVerbs(op, teams)
	declareFilters(teams)
	declareRetries(teams)
	declareSteps(teams)
	declareTimers(teams)
	declareDaemons(teams)
	declareKinds(op)
	return op
}

// options say how the operator works, and what its handlers may ask of the API server.
func options() []einmal.OperatorOption {
	return []einmal.OperatorOption{
		einmal.Applies(&corev1.ConfigMap{}, &corev1.ServiceAccount{}),      // what c.Apply is given
		einmal.Permissions(&corev1.ConfigMap{}, "delete"),                  // what else c.Client is used for
		einmal.PermissionsIn(officeNamespace, &corev1.ConfigMap{}, "list"), // and what in one namespace only
		einmal.Workers(4), // objects that are handled at the same time
		einmal.HandlerDefaults(einmal.AttemptTimeout(2 * time.Minute)), // the longest that an attempt may take
		einmal.RequestTimeout(time.Minute),                             // the longest that the API server may take to answer a request
		einmal.ShutdownTimeout(20 * time.Second),                       // what running handlers have when the operator stops
		einmal.ClockMargin(10 * time.Second),                           // how far clocks of the cluster may be apart
		einmal.Logger(slog.Default()),                                  // where the operator and its handlers log
		einmal.EventsFromLogs(slog.LevelError),                         // what handlers log as errors is shown by kubectl describe too
	}
}

// office is what the operator needs to work, and keeps as long as it runs.
type office struct{ opened time.Time }

// declareActivities declares what concerns the operator itself, and no single team.
func declareActivities(op *einmal.Operator) {
	var o office
	op.OnStartup("open", o.open)
	op.OnCleanup("close", o.close)
	op.OnProbe("open-since", func(context.Context) (any, error) { return o.opened, nil })
}

// open runs before any team is looked at. If it fails, the operator does not start.
func (o *office) open(context.Context, client.Client) error {
	o.opened = time.Now()
	return nil
}

// close runs when every other handler has returned.
func (o *office) close(context.Context) error {
	o.opened = time.Time{}
	return nil
}
