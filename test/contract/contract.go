// Package contract is the list of behaviours that operators may rely on in a Kubernetes API server, as tests: the real
// kube-apiserver passes them, and so must the one in memory. Where the two differ, the one in memory is wrong.
// CASES.md lists them.
package contract

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"
)

// Server is an API server under test.
type Server struct {
	// Config reaches it with all rights.
	Config *rest.Config
}

// behaviour is one thing that an API server does.
type behaviour struct {
	name string
	test func(*world)
}

//go:embed definitions.yaml
var manifests string

// patience is how long something may take that happens in the background.
const patience = 20 * time.Second

// Run tests every behaviour, all on the one server that start gives, each in a namespace of its own.
func Run(t *testing.T, start func(t *testing.T) Server) {
	t.Helper()
	server := start(t)
	setup := newWorld(t, server)
	for document := range strings.SplitSeq(manifests, "\n---\n") {
		setup.define(document)
	}
	for _, b := range behaviours() {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			b.test(newWorld(t, server))
		})
	}
}

// Cases names every behaviour, in the order in which Run tests them. A name begins with what it is about and a colon.
func Cases() []string {
	var names []string
	for _, b := range behaviours() {
		names = append(names, b.name)
	}
	return names
}

func behaviours() []behaviour {
	return slices.Concat(
		creating(), creatingMore(), naming(), updating(), replacingStatus(), replacingCore(), jsonPatching(), jsonPatchingTests(), jsonPatchingStatus(),
		mergePatching(), mergePatchingStatus(), strategic(), applying(), applyingMore(), applyingElsewhere(), applyingConflicts(), managing(),
		deleting(), finalizing(), finalizingMore(), collecting(), collectingMore(), listing(), paging(), pagingMore(), sizing(), selecting(), watching(), watchingSome(), watchingMore(), streaming(),
		pruning(), defaulting(), validating(), expressing(), expressingMore(), serving(), servingMore(), refusingDefinitions(), discovering(), discoveringNames(), refusing(),
		coreKinds(), coreMore(), workloads(), recordingEvents(), leasing(), versions(), spaces(), spacesMore(), stopping(), claiming(), secretTypes(), servicePorts(), serviceAddresses(), serviceNodePorts(), refusingUnchecked(),
		jobs(), scaling(), accessRules(), clusterObjects(), admittingPods(), ownedByUnknown(),
		podTemplates(), workloadSpecs(), refusingBadFields(), acceptingOddFields(),
	)
}

// world is what one behaviour is tested in.
type world struct {
	*testing.T

	http      *http.Client
	host      string
	config    *rest.Config
	namespace string
}

// newWorld makes a namespace, which stays: it goes with the server, and deleting hundreds keeps a real one busy.
func newWorld(t *testing.T, server Server) *world {
	t.Helper()
	browser, err := rest.HTTPClientFor(server.Config)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{T: t, http: browser, host: server.Config.Host, config: server.Config}
	made := w.in("v1", "namespaces", "Namespace").post(object{
		"apiVersion": "v1", "kind": "Namespace", "metadata": object{"generateName": "contract-"},
	}).ok()
	w.namespace = made.text("metadata.name")
	return w
}

// define installs a CustomResourceDefinition and waits until it is served in full.
func (w *world) define(manifest string) object {
	w.Helper()
	var body object
	if err := yaml.Unmarshal([]byte(manifest), &body); err != nil {
		w.Fatal(err)
	}
	definitions := w.definitions()
	definitions.post(body).ok()
	name := body.text("metadata.name")
	w.eventually("the definition is established", func() bool {
		return strings.Contains(fmt.Sprint(definitions.get(name).at("status.conditions")), "Established") &&
			w.served(body)
	})
	return body
}

// served reports whether objects of each served version of a definition can be listed, and its schema is published.
func (w *world) served(definition object) bool {
	for _, version := range definition.at("spec.versions").([]any) {
		described := object(version.(map[string]any))
		if described.at("served") != true {
			continue
		}
		group := definition.text("spec.group") + "/" + described.text("name")
		path := "/apis/" + group + "/" + definition.text("spec.names.plural")
		if w.send(call{method: http.MethodGet, path: path}).code != http.StatusOK {
			return false
		}
		published := w.send(call{method: http.MethodGet, path: "/openapi/v3/apis/" + group})
		if !strings.Contains(string(published.body), `"kind":"`+definition.text("spec.names.kind")+`"`) {
			return false
		}
	}
	return true
}

// call is one request.
type call struct {
	method, path, query, contentType, accept, agent, unless string
	body                                                    any
}

// answer is what came of a call.
type answer struct {
	w       *world
	call    call
	code    int
	header  http.Header
	body    []byte
	content object
}

func (w *world) send(c call) answer {
	w.Helper()
	return w.sendWith(w.Context(), c)
}

func (w *world) request(ctx context.Context, c call) *http.Request {
	w.Helper()
	var text []byte
	switch body := c.body.(type) {
	case nil:
	case string:
		text = []byte(body)
	default:
		var err error
		if text, err = json.Marshal(body); err != nil {
			w.Fatal(err)
		}
	}
	target := strings.TrimSuffix(w.host, "/") + c.path
	if c.query != "" {
		target += "?" + c.query
	}
	request, err := http.NewRequestWithContext(ctx, c.method, target, bytes.NewReader(text))
	if err != nil {
		w.Fatal(err)
	}
	for name, value := range map[string]string{"Content-Type": c.contentType, "Accept": c.accept, "User-Agent": c.agent, "If-None-Match": c.unless} {
		if value != "" {
			request.Header.Set(name, value)
		}
	}
	if c.contentType == "" && c.body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	return request
}

func (w *world) sendWith(ctx context.Context, c call) answer {
	w.Helper()
	response, err := w.http.Do(w.request(ctx, c))
	if err != nil {
		w.Fatalf("%s %s: %v", c.method, c.path, err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		w.Fatalf("%s %s: %v", c.method, c.path, err)
	}
	a := answer{w: w, call: c, code: response.StatusCode, header: response.Header, body: body}
	_ = utiljson.Unmarshal(body, &a.content) // Some answers are no objects.
	return a
}

// ok returns the object in an answer that is no refusal.
func (a answer) ok() object {
	a.w.Helper()
	if a.code >= http.StatusBadRequest {
		a.w.Fatalf("%s %s: %d %s", a.call.method, a.call.path, a.code, a.body)
	}
	return a.content
}

// is checks the code of an answer, and returns the object in it.
func (a answer) is(code int) object {
	a.w.Helper()
	if a.code != code {
		a.w.Fatalf("%s %s: %d, want %d: %s", a.call.method, a.call.path, a.code, code, a.body)
	}
	return a.content
}

// refused checks a refusal: its code, its reason, and texts that its message holds.
func (a answer) refused(code int, reason string, texts ...string) object {
	a.w.Helper()
	a.is(code)
	if a.content.text("kind") != "Status" || a.content.text("reason") != reason || a.content.at("code") != int64(code) {
		a.w.Errorf("%s %s is refused with %s, want reason %q and code %d", a.call.method, a.call.path, a.body, reason, code)
	}
	for _, text := range texts {
		if !strings.Contains(a.content.text("message"), text) {
			a.w.Errorf("the refusal says\n\t%s\nwant in it\n\t%s", a.content.text("message"), text)
		}
	}
	return a.content
}

// eventually waits until something holds that happens in the background.
func (w *world) eventually(what string, holds func() bool) {
	w.Helper()
	deadline := time.After(patience)
	for pause := time.NewTicker(5 * time.Millisecond); !holds(); {
		select {
		case <-pause.C:
		case <-deadline:
			w.Fatalf("not within %s: %s", patience, what)
		}
	}
}

func query(pairs ...string) string {
	values := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		values.Set(pairs[i], pairs[i+1])
	}
	return values.Encode()
}

// The types of patches.
const (
	jsonType      = string(types.JSONPatchType)
	mergeType     = string(types.MergePatchType)
	strategicType = string(types.StrategicMergePatchType)
	applyType     = string(types.ApplyYAMLPatchType)
)
