package kind

import (
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metavalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/einmal-operators/einmal/internal/testkit/apiserver/validate"
)

// builtin describes a built-in kind.
type builtin struct {
	version schema.GroupVersion
	example runtime.Object
	names   Names
	cluster bool
	status  bool
	// generation tells that changes of the spec are counted.
	generation bool
	// putCreates and putChecks differ from most kinds: a PUT creates, a PUT must name the version it replaces.
	putCreates, putChecks bool
	// orphans tells that what an object owns stays when it is deleted, unless the deletion says otherwise.
	orphans    bool
	hub        schema.GroupVersion
	selectable []string
	name       metavalidation.ValidateNameFunc
	defaults   func(runtime.Object)
	validate   validator
	// checked are the fields that validate checks; nil if they are all.
	checked []string
}

func names(plural, kind string, more ...string) Names {
	return Names{Plural: plural, Singular: strings.ToLower(kind), List: kind + "List", ShortNames: more}
}

func inAll(n Names) Names {
	n.Categories = []string{"all"}
	return n
}

// table lists the built-in kinds that are served.
func (c *Compiler) table() []builtin {
	return slices.Concat(coreKinds(), jobKinds(), accessKinds(), clusterKinds(), []builtin{c.definitionKind()})
}

func coreKinds() []builtin {
	core, apps := corev1.SchemeGroupVersion, appsv1.SchemeGroupVersion
	return []builtin{
		{
			version: core, example: &corev1.Namespace{}, names: names("namespaces", "Namespace", "ns"), cluster: true, status: true,
			name: metavalidation.ValidateNamespaceName, defaults: only(defaultNamespace), selectable: []string{"status.phase"},
		},
		{version: core, example: &corev1.ConfigMap{}, names: names("configmaps", "ConfigMap", "cm"), validate: both(validate.ConfigMap)},
		{
			version: core, example: &corev1.Secret{}, names: names("secrets", "Secret"), defaults: only(defaultSecret),
			validate: both(validate.Secret), selectable: []string{"type"},
		},
		{version: core, example: &corev1.ServiceAccount{}, names: names("serviceaccounts", "ServiceAccount", "sa")},
		{
			version: core, example: &corev1.PersistentVolumeClaim{}, names: names("persistentvolumeclaims", "PersistentVolumeClaim", "pvc"),
			status: true, defaults: only(defaultClaim), validate: both(validate.Claim), checked: validate.ClaimFields(),
		},
		{
			version: core, example: &corev1.Pod{}, names: inAll(names("pods", "Pod", "po")), status: true, generation: true,
			defaults: only(defaultPod), validate: both(validate.Pod), checked: validate.PodFields(), selectable: []string{"spec.nodeName", "status.phase"},
		},
		{
			version: core, example: &corev1.Service{}, names: inAll(names("services", "Service", "svc")), status: true, putCreates: true,
			name: metavalidation.NameIsDNS1035Label, defaults: only(defaultService), validate: both(validate.Service), checked: validate.ServiceFields(),
		},
		{
			version: core, example: &corev1.Event{}, names: names("events", "Event", "ev"), putCreates: true,
			validate: both(validate.CoreEvent), selectable: eventFields(),
		},
		{
			version: eventsv1.SchemeGroupVersion, example: &eventsv1.Event{}, names: names("events", "Event", "ev"), hub: core,
			putCreates: true, validate: both(validate.Event),
		},
		{
			version: coordinationv1.SchemeGroupVersion, example: &coordinationv1.Lease{}, names: names("leases", "Lease"),
			putCreates: true, putChecks: true, validate: both(validate.Lease),
		},
		{
			version: apps, example: &appsv1.Deployment{}, names: inAll(names("deployments", "Deployment", "deploy")), status: true,
			generation: true, defaults: only(defaultDeployment), validate: both(validate.Deployment), checked: validate.DeploymentFields(),
		},
		{
			version: apps, example: &appsv1.StatefulSet{}, names: inAll(names("statefulsets", "StatefulSet", "sts")), status: true,
			generation: true, defaults: only(defaultStatefulSet), validate: both(validate.StatefulSet), checked: validate.StatefulSetFields(),
		},
	}
}

func (c *Compiler) definitionKind() builtin {
	named := names("customresourcedefinitions", "CustomResourceDefinition", "crd", "crds")
	named.Categories = []string{"api-extensions"}
	return builtin{
		version: apiextensionsv1.SchemeGroupVersion, example: &apiextensionsv1.CustomResourceDefinition{}, names: named,
		cluster: true, status: true, generation: true, putChecks: true, defaults: only(defaultDefinition), validate: both(c.validateDefinition),
	}
}

// builtinKinds makes the built-in kinds that are served.
func (c *Compiler) builtinKinds() ([]*Kind, error) {
	types := applyconfigurations.NewTypeConverter(scheme.Scheme)
	rules := map[schema.GroupVersionKind]*goRules{}
	use := converter{convert: convertEvent}
	use.rules = func(schema.GroupVersion) Rules { return nil }
	var kinds []*Kind
	for _, described := range c.table() {
		made := described.kind()
		rules[made.GroupVersionKind] = &goRules{builtin: described, kind: made.GroupVersionKind}
		made.Rules = rules[made.GroupVersionKind]
		known := types
		if !scheme.Scheme.Recognizes(made.GroupVersionKind) {
			known = managedfields.NewDeducedTypeConverter()
		}
		own := use
		own.rules = func(schema.GroupVersion) Rules { return made.Rules }
		var err error
		if made.managers, err = builtinManagers(made, known, own); err != nil {
			return nil, err
		}
		kinds = append(kinds, made)
	}
	return kinds, nil
}

func (b builtin) kind() *Kind {
	hub := b.hub
	if hub.Empty() {
		hub = b.version
	}
	var checked validate.Checked
	if b.checked != nil {
		checked = validate.NewChecked(b.checked...)
	}
	return &Kind{
		GroupVersionKind: b.version.WithKind(strings.TrimSuffix(b.names.List, "List")),
		Names:            b.names,
		Namespaced:       !b.cluster,
		HasStatus:        b.status,
		CreateOnUpdate:   b.putCreates,
		Unconditional:    !b.putChecks,
		Example:          b.example,
		Checked:          checked,
		Orphans:          b.orphans,
		hub:              hub,
		convert:          convertEvent,
		selectable:       b.selectable,
	}
}

func builtinManagers(k *Kind, types managedfields.TypeConverter, use converter) (map[string]*managedfields.FieldManager, error) {
	reset := map[string]*fieldpath.Set{"": fieldpath.NewSet()}
	if k.HasStatus {
		reset[""] = fieldpath.NewSet(fieldpath.MakePathOrDie("status"))
		reset[Status] = fieldpath.NewSet(fieldpath.MakePathOrDie("spec"))
	}
	return k.newManagers(types, use, reset)
}

func eventFields() []string {
	return []string{
		"involvedObject.kind", "involvedObject.namespace", "involvedObject.name", "involvedObject.uid",
		"involvedObject.apiVersion", "involvedObject.resourceVersion", "involvedObject.fieldPath", "reason", "source", "type",
		"reportingComponent",
	}
}

// convertEvent converts between the two forms of events, the only built-in kind that is served in two.
func convertEvent(event *unstructured.Unstructured, to schema.GroupVersion) {
	renamed := map[string]string{
		"involvedObject": "regarding", "message": "note", "count": "deprecatedCount", "source": "deprecatedSource",
		"firstTimestamp": "deprecatedFirstTimestamp", "lastTimestamp": "deprecatedLastTimestamp",
		"reportingComponent": "reportingController",
	}
	if event.GetKind() != "Event" || event.GroupVersionKind().GroupVersion() == to {
		return
	}
	event.SetAPIVersion(to.String())
	for core, other := range renamed {
		from, into := core, other
		if to == corev1.SchemeGroupVersion {
			from, into = other, core
		}
		if value, found := event.Object[from]; found {
			delete(event.Object, from)
			event.Object[into] = value
		}
	}
}
