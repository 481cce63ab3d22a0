package einmaltest_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/einmaltest"
)

// configMaps is a scenario with one handler and one ConfigMap.
func configMaps(handler func(p *einmaltest.Process, c *einmal.Change[corev1.ConfigMap]) error) einmaltest.Scenario {
	return func(w *einmaltest.World) {
		w.Start(func(p *einmaltest.Process) *einmal.Operator {
			op := einmal.New("explored.example.com", einmal.Applies(&corev1.Secret{}))
			einmal.For[corev1.ConfigMap](op).OnCreate("handle", func(_ context.Context, c *einmal.Change[corev1.ConfigMap]) error {
				return handler(p, c)
			})
			return op
		})
		w.Create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "one"}})
		w.Advance(10 * time.Minute)
	}
}

func harmless(*einmaltest.Process, *einmal.Change[corev1.ConfigMap]) error { return nil }

// What is not tried is not shown: a scenario whose points are never met again is reported.
func TestAScenarioThatIsNeverTheSameIsReported(t *testing.T) {
	finding := einmaltest.Search(t, configMaps(func(_ *einmaltest.Process, c *einmal.Change[corev1.ConfigMap]) error {
		for range 8 {
			key := client.ObjectKey{Namespace: "default", Name: strings.ToLower(rand.Text())}
			if err := c.Client.Get(context.Background(), key, &corev1.Secret{}); client.IgnoreNotFound(err) != nil {
				return err
			}
		}
		return nil
	}))
	if finding == nil || !strings.Contains(finding.String(), "schedules met their points again") {
		t.Errorf("the finding is %v", finding)
	}
}

// A scenario that fails by itself is not explored.
func TestAScenarioThatFailsByItselfIsReported(t *testing.T) {
	finding := einmaltest.Search(t, func(w *einmaltest.World) {
		configMaps(harmless)(w)
		w.Error("expected otherwise")
	})
	if finding == nil || finding.Schedule != "nothing goes wrong" || finding.Broken[0] != "expected otherwise" {
		t.Errorf("the finding is %v", finding)
	}
}

// A panic of the scenario is a failure of its run, told with its place.
func TestAPanicOfAScenarioIsReported(t *testing.T) {
	finding := einmaltest.Search(t, func(w *einmaltest.World) {
		configMaps(harmless)(w)
		panic("of the scenario")
	})
	if finding == nil || !strings.Contains(finding.Broken[0], "the scenario panicked: of the scenario") {
		t.Errorf("the finding is %v", finding)
	}
}

// Principle 1: what is generated is not generated twice, also where it is kept in a Secret of the cluster.
func TestASecretThatIsGeneratedTwiceIsFound(t *testing.T) {
	finding := einmaltest.Search(t, configMaps(func(_ *einmaltest.Process, c *einmal.Change[corev1.ConfigMap]) error {
		return c.Apply(context.Background(), &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: c.Object.Name}, Data: map[string][]byte{"password": []byte(rand.Text())},
		})
	}))
	if finding == nil || !strings.Contains(finding.String(), "Secret default/one, password: it has had 2 values") {
		t.Errorf("the finding is %v", finding)
	}
}

// Dimensions that an operator is not made for are left out.
func TestDimensionsAreLeftOut(t *testing.T) {
	scenario := func(w *einmaltest.World) {
		times := 0 // Of this run alone: schedules are played at the same time.
		configMaps(func(p *einmaltest.Process, c *einmal.Change[corev1.ConfigMap]) error {
			<-time.After(time.Second) // So that each of two replicas begins before the other has saved that it is done.
			return p.Effect("number "+c.Object.Name, func() (any, error) {
				times++
				return times, nil
			})
		})(w)
	}
	if finding := einmaltest.Search(t, scenario, einmaltest.Only()); finding != nil {
		t.Errorf("without any dimension this is found: %v", finding)
	}
	for _, d := range []einmaltest.Dimension{einmaltest.Crashes, einmaltest.Answers, einmaltest.Replicas} {
		if finding := einmaltest.Search(t, scenario, einmaltest.Only(d)); finding == nil {
			t.Errorf("with %s nothing is found", d)
		}
	}
}

// shortVariable makes TestExploreStopsBeforeTheDeadlineOfTheTest explore.
const shortVariable = "EINMALTEST_SHORT"

// Before the test binary is ended for its -timeout, Explore reports how far it has come. It has said before how many schedules there are.
func TestExploreStopsBeforeTheDeadlineOfTheTest(t *testing.T) {
	if os.Getenv(shortVariable) != "" {
		einmaltest.Explore(t, configMaps(func(p *einmaltest.Process, c *einmal.Change[corev1.ConfigMap]) error {
			for i := range 60 {
				set := func() (any, error) { return nil, nil }
				if err := p.IdempotentEffect(fmt.Sprintf("set %d of %s", i, c.Object.Name), set); err != nil {
					return err
				}
			}
			return nil
		}))
		return
	}
	run := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=21s")
	run.Env = append(os.Environ(), shortVariable+"=1")
	printed, err := run.CombinedOutput()
	if err == nil {
		t.Error("it passes")
	}
	for _, part := range []string{"playing ", " schedules: ", "when this goes wrong: the deadline of the test", "schedules were played and broke nothing", "raise -timeout"} {
		if !strings.Contains(string(printed), part) {
			t.Errorf("it does not say %q", part)
		}
	}
}

// A previous version that cannot run fails the exploration: it is not started again and again.
func TestAPreviousVersionThatCannotRunIsReported(t *testing.T) {
	finding := einmaltest.Search(t, func(w *einmaltest.World) {
		w.UpgradeFrom(func(*einmaltest.Process) *einmal.Operator { return einmal.New("no kinds") })
		configMaps(harmless)(w)
	})
	if finding == nil || !strings.Contains(finding.String(), "declare at least one") {
		t.Errorf("the finding is %v", finding)
	}
}
