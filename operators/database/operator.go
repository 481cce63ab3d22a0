package main

import (
	"flag"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/einmal-operators/einmal"
	v1 "github.com/einmal-operators/einmal/operators/database/api/v1"
	"github.com/einmal-operators/einmal/operators/database/backup"
	"github.com/einmal-operators/einmal/operators/database/config/crd"
	"github.com/einmal-operators/einmal/operators/database/manifest"
	"github.com/einmal-operators/einmal/operators/database/mariadb"
	"github.com/einmal-operators/einmal/operators/database/postgres"
)

// identity names the operator in its records, its field manager and its ownership marks. It never changes.
const identity = "databases.einmal.dev"

// defaultImages are the defaults of the flags --image and --mariadb-image.
func defaultImages() images {
	return images{postgresql: "postgres:{version}", mariadb: "mariadb:{version}"}
}

// change is the argument of the handlers.
type change = einmal.Change[v1.Database]

// databases handles Databases.
type databases struct {
	clients clients
	metrics backup.Metrics
	images  images
	// extensions are the extensions that the superuser creates when a database is restored.
	extensions []string
}

// operator returns the operator with real connections.
func operator() *einmal.Operator {
	return declare(clients{postgres.Client{}, mariadb.Client{}}, defaultImages(), metrics.Registry)
}

// declare returns the operator with all its handlers. The images are the defaults of its flags.
func declare(clients clients, images images, registry prometheus.Registerer) *einmal.Operator {
	handled := &databases{clients: clients, images: images, metrics: backup.Register(registry)}
	op := einmal.New(identity, einmal.Scheme(v1.AddToScheme), einmal.CRDs(crd.YAML), einmal.Flags(func(set *flag.FlagSet) {
		of := &handled.images
		set.StringVar(&of.postgresql, "image", of.postgresql, "`IMAGE` of PostgreSQL for Databases without spec.image; {version} stands for spec.version")
		set.StringVar(&of.mariadb, "mariadb-image", of.mariadb, "`IMAGE` of MariaDB for Databases without spec.image; {version} stands for spec.version")
		set.StringVar(&of.operator, "operator-image", "",
			"`IMAGE` of this operator, which copies backups to buckets and fetches them; by default, that of the container "+container+" of its Pod")
		set.Func("restore-extensions", "`NAMES` of extensions of PostgreSQL, with commas between them, that the superuser creates in a restore; all others must be "+
			"trusted extensions, which the owner of the database creates (default none)", handled.setExtensions)
	}))
	of := einmal.For[v1.Database](op)
	of.Reconcile("provision", handled.provision,
		einmal.Owns[appsv1.StatefulSet](), einmal.Owns[corev1.Service](), einmal.Owns[corev1.ConfigMap](), einmal.Owns[networkingv1.NetworkPolicy](),
		einmal.Owns[policyv1.PodDisruptionBudget](),
		einmal.Watches(named, einmal.GVK("", "v1", "Pod")),
		einmal.Watches(named, einmal.GVK("", "v1", "PersistentVolumeClaim")),
		einmal.Watches(credentialOf, einmal.GVK("", "v1", "Secret")),
		einmal.Applies(&appsv1.StatefulSet{}, &corev1.Service{}, &corev1.ConfigMap{}, &networkingv1.NetworkPolicy{}, &policyv1.PodDisruptionBudget{}),
		einmal.Permissions(&appsv1.StatefulSet{}, "delete"),         // A claim template cannot be changed.
		einmal.Permissions(&corev1.Pod{}, "get", "patch", "delete"), // Versions, images and some parameters take effect after a restart only.
		einmal.Permissions(&corev1.PersistentVolumeClaim{}, "get", "patch"),
		einmal.Permissions(&corev1.Node{}, "get"),
		einmal.Permissions(&corev1.Secret{}, "get", "create", "update"))
	handled.handleBackups(of)
	of.OnDelete("erase", erase,
		einmal.Permissions(&corev1.PersistentVolumeClaim{}, "delete"), einmal.Permissions(&corev1.Pod{}, "patch", "delete"),
		einmal.Permissions(&corev1.Secret{}, "delete"))
	// What sends no events: whether the server accepts the passwords, how full its volume is, and how its standbys are.
	of.Timer("probe", pollInterval, handled.probeAgain)
	return op
}

// named returns the Database that a Pod or claim belongs to. Only the metadata of Pods and claims are cached: the cluster can have many.
func named(object *metav1.PartialObjectMetadata) []types.NamespacedName {
	if name := object.Labels[manifest.NameLabel]; name != "" {
		return []types.NamespacedName{{Name: name}}
	}
	return nil
}

// credentialOf returns the Database whose credential a Secret can be, by its name.
func credentialOf(secret *metav1.PartialObjectMetadata) []types.NamespacedName {
	copied, _, _ := strings.Cut(secret.Name, ".g")
	for _, suffix := range []string{"-app", "-monitor", "-replication", "-backup"} {
		if name, found := strings.CutSuffix(copied, suffix); found {
			return []types.NamespacedName{{Name: name}}
		}
	}
	return nil
}
