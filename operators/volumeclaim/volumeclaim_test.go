package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal/einmaltest"
	v1 "github.com/einmal-operators/einmal/operators/volumeclaim/api/v1"
)

// The life of claims on a real control plane, as in the tutorial. The operator runs under its own ServiceAccount; the test is the user.
func TestOperator(t *testing.T) {
	s := begin(t)
	t.Run("a claim made before the operator started gets a volume", s.createdEarlier)
	t.Run("a restart repeats nothing", s.restart)
	t.Run("a claim goes after its last pod", s.goesAfterItsLastPod)
	t.Run("a volume that is not ours is left alone", s.foreignVolume)
	t.Run("the volume of a deleted claim is collected", s.deletion)
	t.Run("a right that is missing is named, and the work is done when it is there", s.missingRight)
}

// Volumes follow the changes of their claims, and an operator that crashes continues where it was.
func TestVolumesFollowClaimsAlsoAfterACrash(t *testing.T) {
	s := begin(t)
	t.Run("a claim that grows gets more space", s.growing)
	t.Run("labels follow the claim", s.labels)
	t.Run("a volume that others have grown is fine", s.grownByOthers)
	t.Run("a crash in the middle leaves nothing undone", s.crash)
}

// story is the operator and its cluster through the parts of a test.
type story struct {
	*cluster
	start   func() *einmaltest.Program
	running *einmaltest.Program
}

// begin creates two claims and starts the operator after that.
func begin(t *testing.T) *story {
	t.Helper()
	c := sharedCluster(t)
	kubeconfig := c.operatorKubeconfig(t)
	c.ApplyFolders(t, "config/samples")
	c.create(t, "patient", "1Gi")
	s := &story{cluster: c, start: func() *einmaltest.Program { return c.Run(t, self(t), kubeconfig) }}
	s.running = s.start()
	return s
}

func (s *story) createdEarlier(t *testing.T) {
	claim := s.awaitBound(t, "my-claim", "1G")
	checkReady(t, claim)
	checkOwned(t, claim, s.volume(t, "my-claim"))
	checkStory(t, s.running.Log(), "my-claim", "seen for the first time", "handler invoked", "handler succeeded")
}

func (s *story) growing(t *testing.T) {
	s.awaitBound(t, "my-claim", "1G")
	s.patch(t, `{"spec":{"size":"2G"}}`)
	checkReady(t, s.awaitBound(t, "my-claim", "2G"))
	checkStory(t, s.running.Log(), "my-claim", "handler=resize-pvc")
}

func (s *story) labels(t *testing.T) {
	s.patch(t, `{"metadata":{"labels":{"tier":"fast"}}}`)
	s.awaitLabels(t, "my-claim", map[string]string{"tier": "fast"})
	s.patch(t, `{"metadata":{"labels":{"tier":null,"team":"blue"}}}`)
	s.awaitLabels(t, "my-claim", map[string]string{"team": "blue"})
}

// grownByOthers grows the volume of the sample as another client, and then changes the labels and the size of its claim.
func (s *story) grownByOthers(t *testing.T) {
	grow := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"resources":{"requests":{"storage":"5G"}}}}`))
	if err := s.Patch(t.Context(), s.volume(t, "my-claim"), grow); err != nil {
		t.Fatal(err)
	}
	s.awaitBound(t, "my-claim", "5G")
	s.patch(t, `{"metadata":{"labels":{"team":"green"}}}`)
	s.awaitLabels(t, "my-claim", map[string]string{"team": "green"})
	s.patch(t, `{"spec":{"size":"3G"}}`)
	einmaltest.Eventually(t, "the claim of 3G is ready", func(context.Context) error {
		ready := meta.FindStatusCondition(s.claim(t, "my-claim").Status.Conditions, v1.ConditionReady)
		if want := "there is a volume of 5G, more than spec.size asks for, which is 3G"; ready == nil || ready.Message != want || ready.Status != metav1.ConditionTrue {
			return fmt.Errorf("condition Ready is %+v, want %q", ready, want)
		}
		return nil
	})
}

func (s *story) restart(t *testing.T) {
	s.awaitBound(t, "patient", "1Gi")
	s.running.Stop(t)
	before := s.claim(t, "my-claim").ResourceVersion
	s.running = s.start()
	s.running.AwaitLog(t, "caught up with existing objects")
	for line := range strings.Lines(s.running.Log()) {
		if strings.Contains(line, "handler invoked") && !strings.Contains(line, "handler=repair-pvc") { // It looks at volumes in each process.
			t.Errorf("a handler ran again: %s", line)
		}
	}
	if after := s.claim(t, "my-claim").ResourceVersion; after != before {
		t.Errorf("the restart wrote the claim: resourceVersion %s, was %s", after, before)
	}
}

func (s *story) crash(t *testing.T) {
	var names []string
	for i := range 10 {
		names = append(names, fmt.Sprintf("crash-%d", i))
		s.create(t, names[i], "1Gi")
	}
	einmaltest.Eventually(t, "the first volume", func(ctx context.Context) error {
		return s.Get(ctx, key(names[0]), &corev1.PersistentVolumeClaim{})
	})
	s.running.Kill()
	made := s.volumes(t, names)
	s.running = s.start()
	for _, name := range names {
		checkReady(t, s.awaitBound(t, name, "1Gi"))
	}
	after := s.volumes(t, names)
	for name, uid := range made {
		if after[name] != uid {
			t.Errorf("the volume of %s was made again", name)
		}
	}
}

func (s *story) foreignVolume(t *testing.T) {
	foreign := volumeFor(claimOf("1Gi"), resource.MustParse("1Gi"))
	foreign.Name, foreign.Namespace = "taken", "default"
	foreign.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	if err := s.Create(t.Context(), foreign); err != nil {
		t.Fatal(err)
	}
	s.create(t, "taken", "2Gi")
	s.awaitReason(t, "taken", "VolumeRefused")
	if owners := s.volume(t, "taken").OwnerReferences; len(owners) > 0 {
		t.Errorf("the foreign volume has got owners: %v", owners)
	}
}

func (s *story) deletion(t *testing.T) {
	if err := s.Delete(t.Context(), s.claim(t, "my-claim")); err != nil {
		t.Fatal(err)
	}
	s.awaitGone(t, &v1.EphemeralVolumeClaim{}, "my-claim")
	s.awaitGone(t, &corev1.PersistentVolumeClaim{}, "my-claim")
}

// missingRight takes from the roles that the operator ships one right of its own and one of its handlers.
func (s *story) missingRight(t *testing.T) {
	for right, name := range map[string]string{
		"patch ephemeralvolumeclaims/status": "without-status", "create persistentvolumeclaims": "without-volumes",
	} {
		t.Run(right, func(t *testing.T) {
			verb, kinds, _ := strings.Cut(right, " ")
			restore := s.takeRight(t, verb, kinds)
			s.create(t, name, "1Gi")
			s.running.AwaitLog(t, fmt.Sprintf(`cannot %s resource \"%s\"`, verb, kinds))
			restore()
			s.awaitBound(t, name, "1Gi")
		})
	}
}

// takeRight takes one verb from the operator's role, and returns what gives it back.
func (s *story) takeRight(t *testing.T, verb, from string) (restore func()) {
	t.Helper()
	role := &rbacv1.ClusterRole{}
	if err := s.Get(t.Context(), client.ObjectKey{Name: "volumeclaim"}, role); err != nil {
		t.Fatal(err)
	}
	whole := role.DeepCopy()
	for i, rule := range role.Rules {
		if slices.Contains(rule.Resources, from) {
			role.Rules[i].Verbs = slices.DeleteFunc(rule.Verbs, func(has string) bool { return has == verb })
		}
	}
	role.Rules = slices.DeleteFunc(role.Rules, func(rule rbacv1.PolicyRule) bool { return len(rule.Verbs) == 0 })
	if err := s.Update(t.Context(), role); err != nil {
		t.Fatal(err)
	}
	return func() {
		whole.ResourceVersion = role.ResourceVersion
		if err := s.Update(t.Context(), whole); err != nil {
			t.Fatal(err)
		}
	}
}

func checkReady(t *testing.T, claim *v1.EphemeralVolumeClaim) {
	t.Helper()
	ready := meta.FindStatusCondition(claim.Status.Conditions, v1.ConditionReady)
	if ready == nil || ready.Status != metav1.ConditionTrue || ready.ObservedGeneration != claim.Generation {
		t.Errorf("condition Ready of generation %d is %+v", claim.Generation, ready)
	}
	if claim.Status.PVCName != claim.Name {
		t.Errorf("status.pvcName is %q, want %q", claim.Status.PVCName, claim.Name)
	}
}

func checkOwned(t *testing.T, claim *v1.EphemeralVolumeClaim, volume *corev1.PersistentVolumeClaim) {
	t.Helper()
	if !metav1.IsControlledBy(volume, claim) {
		t.Errorf("the volume's owners are %v, want the claim", volume.OwnerReferences)
	}
}

// checkStory expects lines about the object that contain the given words, in this order.
func checkStory(t *testing.T, log, name string, words ...string) {
	t.Helper()
	told := storyOf(log, name)
	for _, word := range words {
		at := slices.IndexFunc(told, func(line string) bool { return strings.Contains(line, word) })
		if at < 0 {
			t.Fatalf("the log does not tell %q of %s, or not after what comes before it in %q; it tells:\n%s",
				word, name, words, strings.Join(storyOf(log, name), "\n"))
		}
		told = told[at+1:]
	}
}

func storyOf(log, name string) []string {
	var told []string
	for line := range strings.Lines(log) {
		if strings.Contains(line, "default/"+name) {
			told = append(told, strings.TrimSpace(line))
		}
	}
	return told
}

// volumes returns the uids of those of the volumes that exist.
func (c *cluster) volumes(t *testing.T, names []string) map[string]types.UID {
	t.Helper()
	found := map[string]types.UID{}
	for _, name := range names {
		volume := &corev1.PersistentVolumeClaim{}
		if err := c.Get(t.Context(), key(name), volume); err == nil {
			found[name] = volume.UID
		} else if !apierrors.IsNotFound(err) {
			t.Fatal(err)
		}
	}
	return found
}

// awaitBound waits until the claim says that it has a volume of the size, and checks that the volume says so too.
func (c *cluster) awaitBound(t *testing.T, name, size string) *v1.EphemeralVolumeClaim {
	t.Helper()
	claim, want := &v1.EphemeralVolumeClaim{}, resource.MustParse(size)
	einmaltest.Eventually(t, "claim "+name+" bound at "+size, func(ctx context.Context) error {
		if err := c.Get(ctx, key(name), claim); err != nil {
			return err
		}
		if claim.Status.Phase != v1.Bound || claim.Status.Capacity == nil || claim.Status.Capacity.Cmp(want) != 0 {
			return fmt.Errorf("the status is %+v", claim.Status)
		}
		return nil
	})
	if capacity := c.volume(t, name).Status.Capacity[corev1.ResourceStorage]; capacity.Cmp(want) != 0 {
		t.Errorf("the claim says %s, and the volume has %s", size, &capacity)
	}
	return claim
}

func (c *cluster) awaitLabels(t *testing.T, name string, want map[string]string) {
	t.Helper()
	einmaltest.Eventually(t, "labels of the volume of "+name, func(context.Context) error {
		if diff := cmp.Diff(want, c.volume(t, name).Labels); diff != "" {
			return errors.New(diff)
		}
		return nil
	})
}

func (c *cluster) awaitReason(t *testing.T, name, reason string) {
	t.Helper()
	einmaltest.Eventually(t, "claim "+name+" says "+reason, func(context.Context) error {
		ready := meta.FindStatusCondition(c.claim(t, name).Status.Conditions, v1.ConditionReady)
		if ready == nil || ready.Reason != reason {
			return fmt.Errorf("condition Ready is %+v", ready)
		}
		return nil
	})
}

func (c *cluster) awaitGone(t *testing.T, object client.Object, name string) {
	t.Helper()
	einmaltest.Eventually(t, fmt.Sprintf("%T %s gone", object, name), func(ctx context.Context) error {
		err := c.Get(ctx, key(name), object)
		switch {
		case apierrors.IsNotFound(err):
			return nil
		case err != nil:
			return err
		default:
			return errors.New("it is still there")
		}
	})
}
