package manifest

import (
	"os"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	v1 "github.com/einmal-operators/einmal/operators/database/api/v1"
)

// Where all is busy, a probe can take many seconds. Neither a server nor the operator is killed before it has failed for a minute, and the operator has a share
// of the CPU that is enough to answer.
func TestABusyNodeKillsNoServer(t *testing.T) {
	for _, engine := range []v1.Engine{v1.PostgreSQL, v1.MariaDB} {
		db := &v1.Database{Spec: v1.DatabaseSpec{Engine: engine}}
		expectPatience(t, string(engine), serverContainer(db, Settings{}))
	}
	text, err := os.ReadFile("../config/deploy/deployment.yaml")
	if err != nil {
		t.Fatal(err)
	}
	deployment := &appsv1.Deployment{}
	for part := range strings.SplitSeq(string(text), "\n---\n") {
		if err := yaml.Unmarshal([]byte(part), deployment); err != nil {
			t.Fatal(err)
		}
	}
	operator := deployment.Spec.Template.Spec.Containers[0]
	expectPatience(t, "the operator", operator)
	if cpu := operator.Resources.Requests.Cpu().MilliValue(); cpu < 50 {
		t.Errorf("the operator requests %dm CPU", cpu)
	}
}

// expectPatience expects that a container is killed only after a minute, also if its probe does not end.
func expectPatience(t *testing.T, name string, container corev1.Container) {
	t.Helper()
	alive := container.LivenessProbe
	answers := time.Duration(alive.TimeoutSeconds) * time.Second
	kills := time.Duration(alive.FailureThreshold*alive.PeriodSeconds) * time.Second
	if answers < 10*time.Second || kills < time.Minute {
		t.Errorf("%s has to answer within %s, and is killed after %s", name, answers, kills)
	}
}

// A server whose write-ahead log fills the volume ends, and one whose parallel query has no shared memory fails it. So both follow what the Database has.
func TestDefaultsFollowWhatTheDatabaseHas(t *testing.T) {
	for storage, want := range map[string]string{
		"300Mi": "max_slot_wal_keep_size = '48MB'\nmax_wal_size = '48MB'\nmin_wal_size = '32MB'\n",
		"1Gi":   "max_slot_wal_keep_size = '102MB'\nmax_wal_size = '102MB'\nmin_wal_size = '51MB'\n",
		"100Gi": "max_slot_wal_keep_size = '10240MB'\nmax_wal_size = '1024MB'\nmin_wal_size = '80MB'\n",
	} {
		if got := Defaults(&v1.Database{Spec: v1.DatabaseSpec{Storage: resource.MustParse(storage)}}); got != want {
			t.Errorf("with %s, the defaults are\n%swant\n%s", storage, got, want)
		}
	}
	limited := func(memory string) *v1.Resources {
		return &v1.Resources{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(memory)}}
	}
	for want, given := range map[string]*v1.Resources{"512Mi": nil, "2Gi": limited("4Gi"), "": {}} {
		got := ""
		for _, volume := range volumes(&v1.Database{Spec: v1.DatabaseSpec{Resources: given}}) {
			if volume.Name == "shm" && volume.EmptyDir.SizeLimit != nil {
				got = volume.EmptyDir.SizeLimit.String()
			}
		}
		if got != want {
			t.Errorf("processes can share %q, want %q", got, want)
		}
	}
}
