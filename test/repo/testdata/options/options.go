// Package options calls every option of package einmal once. A test type-checks the calls, and makes the table of options and places.
package options

import (
	"flag"
	"log/slog"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/einmal-operators/einmal"
)

// All calls every option.
func All() []any {
	return []any{
		einmal.Adopt(),
		einmal.CopyLabels("team"),
		einmal.CopyTrackingLabels(),
		einmal.NestedLabels("spec.template"),
		einmal.NotController(),
		einmal.AbandonAfter(time.Minute),
		einmal.All(einmal.Labels("team", einmal.Present())),
		einmal.AlsoAtCreation(),
		einmal.AlsoAtDeletion(),
		einmal.Annotations("team", einmal.Present()),
		einmal.Any(einmal.Labels("team", einmal.Present())),
		einmal.Applies(&corev1.ConfigMap{}),
		einmal.AttemptTimeout(time.Minute),
		einmal.Backoff(time.Second, time.Minute),
		einmal.CRDs(nil),
		einmal.ClockMargin(time.Minute),
		einmal.Concurrency(8),
		einmal.EventsFromLogs(slog.LevelWarn),
		einmal.FieldChanges("spec.size"),
		einmal.FieldMatches("spec.size", einmal.Present()),
		einmal.Fields("spec.size"),
		einmal.FixedRate(),
		einmal.Flags(func(*flag.FlagSet) {}),
		einmal.FormerlyKnownAs("old"),
		einmal.GVK("example.com", "v1", "Website"),
		einmal.HandlerDefaults(),
		einmal.IdleFor(time.Minute),
		einmal.InitialDelay(time.Minute),
		einmal.InitialDelayOf(func(*corev1.ConfigMap) time.Duration { return 0 }),
		einmal.Labels("team", einmal.Present()),
		einmal.LeaseDuration(time.Minute),
		einmal.Logger(slog.Default()),
		einmal.ManagerOptions(func(*manager.Options) {}),
		einmal.MaxAttempts(3),
		einmal.Namespaces("app-*"),
		einmal.None(einmal.Labels("team", einmal.Present())),
		einmal.Not(einmal.Labels("team", einmal.Present())),
		einmal.OnError(einmal.PolicyFail),
		einmal.Owns[corev1.ConfigMap](),
		einmal.Prunes[corev1.ConfigMap](),
		einmal.OwnsStatus("phase"),
		einmal.Permissions(&corev1.ConfigMap{}, "get"),
		einmal.PermissionsIn("default", &corev1.ConfigMap{}, "get"),
		einmal.ReleaseOnFailure(),
		einmal.RequestTimeout(time.Minute),
		einmal.RetryFor(time.Hour),
		einmal.Scheme(func(*runtime.Scheme) error { return nil }),
		einmal.SetupManager(func(manager.Manager) error { return nil }),
		einmal.ShutdownTimeout(time.Minute),
		einmal.StateNamespace("default"),
		einmal.StopGrace(time.Minute),
		einmal.Watches(func(*corev1.ConfigMap) []types.NamespacedName { return nil }),
		einmal.When(func(*corev1.ConfigMap) bool { return true }),
		einmal.WithoutEvents(),
		einmal.WithoutFinalizer(),
		einmal.Workers(16),
	}
}
