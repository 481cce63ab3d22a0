package einmaltest

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// fieldOwner is who applies in scripts.
	fieldOwner = "kubectl"
	// beginning is how long an operator has to fill its cache before the next step.
	beginning = time.Second
)

// action is one step that can be done.
type action struct {
	line int
	text string
	do   func(*performance) error
}

// step is a kind of steps: how it is written, and how what follows its first word is read.
type step struct {
	usage string
	read  func(p *performance, rest string) (func(*performance) error, error)
}

// steps are those that every script knows, by their first word.
func steps() map[string]step {
	return map[string]step{
		"start":   {"start [VERSION]", readStart},
		"restart": {"restart [VERSION]", readRestart},
		"stop":    {"stop", readEnd((*World).Stop)},
		"kill":    {"kill", readEnd((*World).Kill)},
		"create":  {"create MANIFEST", eachObject((*performance).create)},
		"apply":   {"apply MANIFEST", eachObject((*performance).apply)},
		"replace": {"replace MANIFEST", eachObject((*performance).replace)},
		"patch":   {"patch KIND NAME [SUBRESOURCE] {JSON}", readPatch},
		"delete":  {"delete KIND NAME", readDelete},
		"wait":    {"wait DURATION, such as 90s, 10m or 2h", readWait},
	}
}

// errUsage is what the arguments of a step are when they are not as its usage says.
var errUsage = errors.New("it is written as")

// compile reads the steps of a part.
func (p *performance) compile(one part) ([]action, error) {
	switch one.name {
	case sectionGiven:
		place := func(p *performance) error { return p.each(one.objects, (*performance).place) }
		return []action{{line: one.line, text: one.name, do: place}}, nil
	case sectionWhen:
	default:
		return nil, nil
	}
	var actions []action
	var wrong []error
	for n, line := range one.lines {
		do, err := p.compileStep(line)
		if err != nil {
			wrong = append(wrong, p.script.mistake(n, "%s: %w", line, err))
		}
		actions = append(actions, action{line: n, text: line, do: do})
	}
	return actions, errors.Join(wrong...)
}

func (p *performance) compileStep(line string) (func(*performance) error, error) {
	word, rest, _ := strings.Cut(line, " ")
	rest = strings.TrimSpace(rest)
	if _, own := p.subject.Steps[word]; own {
		return func(p *performance) error { return p.subject.Steps[word](strings.Fields(rest)...) }, nil
	}
	all := steps()
	known, is := all[word]
	if !is {
		words := slices.Concat(slices.Sorted(maps.Keys(all)), slices.Sorted(maps.Keys(p.subject.Steps)))
		return nil, fmt.Errorf("there is no step %q: steps begin with %s; a comment begins with #", word, strings.Join(words, ", "))
	}
	do, err := known.read(p, rest)
	if errors.Is(err, errUsage) {
		return nil, fmt.Errorf("%w %s", err, known.usage)
	}
	return do, err
}

func readStart(p *performance, version string) (func(*performance) error, error) {
	made := p.subject.Operator
	if version != "" {
		var known bool
		if made, known = p.subject.Versions[version]; !known {
			all := strings.Join(slices.Sorted(maps.Keys(p.subject.Versions)), ", ")
			return nil, fmt.Errorf("there is no version %q of the operator: known are [%s]", version, all)
		}
	}
	return func(p *performance) error {
		if p.sim.Running() {
			return errors.New("the operator runs already: stop or restart it")
		}
		p.Start(made)
		p.Advance(beginning)
		return nil
	}, nil
}

func readRestart(p *performance, version string) (func(*performance) error, error) {
	start, err := readStart(p, version)
	return func(p *performance) error {
		if !p.sim.Running() {
			return errNotRunning
		}
		p.Stop()
		return start(p)
	}, err
}

var errNotRunning = errors.New("the operator does not run: start it before")

func readEnd(end func(*World)) func(*performance, string) (func(*performance) error, error) {
	return func(_ *performance, rest string) (func(*performance) error, error) {
		if rest != "" {
			return nil, errUsage
		}
		return func(p *performance) error {
			if !p.sim.Running() {
				return errNotRunning
			}
			end(p.World)
			return nil
		}, nil
	}
}

func readWait(_ *performance, rest string) (func(*performance) error, error) {
	d, err := time.ParseDuration(rest)
	if err != nil || d <= 0 {
		return nil, errUsage
	}
	return func(p *performance) error {
		p.Advance(d)
		return nil
	}, nil
}

// eachObject reads the name of a manifest, and does something with each of its objects.
func eachObject(do func(*performance, *unstructured.Unstructured) error) func(*performance, string) (func(*performance) error, error) {
	return func(p *performance, name string) (func(*performance) error, error) {
		if name == "" {
			return nil, errUsage
		}
		objects, known := p.script.manifests[name]
		if !known {
			return nil, fmt.Errorf("the script has no section %q: write it below a line -- %s --", name, name)
		}
		return func(p *performance) error { return p.each(objects, do) }, nil
	}
}

// each does something with a copy of each object, in the namespace default where it names none.
func (p *performance) each(objects []*unstructured.Unstructured, do func(*performance, *unstructured.Unstructured) error) error {
	for _, object := range objects {
		copied := object.DeepCopy()
		mapping, err := p.sim.Mapper().RESTMapping(copied.GroupVersionKind().GroupKind(), copied.GroupVersionKind().Version)
		if err != nil {
			return fmt.Errorf("%s %s: %w", copied.GetKind(), copied.GetName(), err)
		}
		if copied.GetNamespace() == "" && mapping.Scope.Name() == meta.RESTScopeNameNamespace {
			copied.SetNamespace("default")
		}
		if err := do(p, copied); err != nil {
			return fmt.Errorf("%s %s: %w", copied.GetKind(), copied.GetName(), err)
		}
	}
	return nil
}

// place creates an object with its status.
func (p *performance) place(object *unstructured.Unstructured) error {
	status, has := object.Object["status"]
	if err := p.create(object); err != nil || !has {
		return err
	}
	object.Object["status"] = status
	return p.Client().Status().Update(p.Context(), object)
}

func (p *performance) create(object *unstructured.Unstructured) error {
	return p.Client().Create(p.Context(), object)
}

func (p *performance) apply(object *unstructured.Unstructured) error {
	configuration := client.ApplyConfigurationFromUnstructured(object)
	return p.Client().Apply(p.Context(), configuration, client.FieldOwner(fieldOwner), client.ForceOwnership)
}

// replace does what kubectl does: what it puts there has the newest revision, and nothing else of what was there.
func (p *performance) replace(object *unstructured.Unstructured) error {
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		there := object.DeepCopy()
		if err := p.Client().Get(p.Context(), client.ObjectKeyFromObject(object), there); err != nil {
			return err
		}
		replaced := object.DeepCopy()
		replaced.SetResourceVersion(there.GetResourceVersion())
		return p.Client().Update(p.Context(), replaced)
	})
}

func readPatch(_ *performance, rest string) (func(*performance) error, error) {
	at := strings.Index(rest, "{")
	if at < 0 {
		return nil, errUsage
	}
	words, body := strings.Fields(rest[:at]), []byte(rest[at:])
	if len(words) < 2 || len(words) > 3 {
		return nil, errUsage
	}
	if err := json.Unmarshal(body, &map[string]any{}); err != nil {
		return nil, fmt.Errorf("%s is no JSON: %w", body, err)
	}
	return func(p *performance) error {
		object, err := p.object(words[0], words[1])
		if err != nil {
			return err
		}
		patch := client.RawPatch(types.MergePatchType, body)
		if len(words) > 2 {
			return p.Client().SubResource(words[2]).Patch(p.Context(), object, patch)
		}
		return p.Client().Patch(p.Context(), object, patch)
	}, nil
}

func readDelete(_ *performance, rest string) (func(*performance) error, error) {
	words := strings.Fields(rest)
	if len(words) != 2 {
		return nil, errUsage
	}
	return func(p *performance) error {
		object, err := p.object(words[0], words[1])
		if err != nil {
			return err
		}
		return p.Client().Delete(p.Context(), object)
	}, nil
}

// object is an object by what people call its kind, and by its name.
func (p *performance) object(kind, name string) (*unstructured.Unstructured, error) {
	resource := schema.ParseGroupResource(strings.ToLower(kind)).WithVersion("")
	found, err := p.sim.Mapper().KindFor(resource)
	if err != nil {
		return nil, fmt.Errorf("the kind %q: %w", kind, err)
	}
	mapping, err := p.sim.Mapper().RESTMapping(found.GroupKind(), found.Version)
	if err != nil {
		return nil, fmt.Errorf("the kind %q: %w", kind, err)
	}
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(found)
	namespace, inNamespace, named := strings.Cut(name, "/")
	switch {
	case named:
		object.SetNamespace(namespace)
		object.SetName(inNamespace)
	case mapping.Scope.Name() == meta.RESTScopeNameNamespace:
		object.SetNamespace("default")
		object.SetName(name)
	default:
		object.SetName(name)
	}
	return object, nil
}
