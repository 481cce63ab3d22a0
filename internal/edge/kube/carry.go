package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	jsonutil "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/record"
)

// carryTries is how often an update without a resource version is sent if other clients change the object at the same time.
const carryTries = 5

// Update replaces the object. An object of a handled kind keeps its current records, whatever records the copy has.
func (r SplitClient) Update(ctx context.Context, from client.Object, options ...client.UpdateOption) error {
	return r.preserveRecords(ctx, from, func(sent client.Object) error { return notServed(r.Client.Update(ctx, sent, options...), from) })
}

// Patch changes the object. A merge patch does not change the records of a handled kind: a patch computed from copies of which only one
// has the records would remove or revert them. A JSON Patch is sent unchanged.
func (r SplitClient) Patch(ctx context.Context, target client.Object, patch client.Patch, options ...client.PatchOption) error {
	spared, err := r.withoutRecordChanges(ctx, target, patch)
	if err != nil {
		return err
	}
	return notServed(r.Client.Patch(ctx, target, spared, options...), target)
}

// Status returns a writer for the status.
func (r SplitClient) Status() client.SubResourceWriter { return r.SubResource("status") }

// SubResource returns a client for a subresource.
func (r SplitClient) SubResource(name string) client.SubResourceClient {
	return subresource{SubResourceClient: r.Client.SubResource(name), parent: r}
}

// subresource is a client whose updates and patches keep records too.
type subresource struct {
	client.SubResourceClient
	parent SplitClient
}

// Update replaces the subresource.
func (s subresource) Update(ctx context.Context, from client.Object, options ...client.SubResourceUpdateOption) error {
	settings := (&client.SubResourceUpdateOptions{}).ApplyOptions(options)
	if settings.SubResourceBody == nil {
		return s.parent.preserveRecords(ctx, from, func(sent client.Object) error {
			return notServed(s.SubResourceClient.Update(ctx, sent, options...), from)
		})
	}
	return s.parent.preserveRecords(ctx, settings.SubResourceBody, func(sent client.Object) error {
		return notServed(s.SubResourceClient.Update(ctx, from, append(slices.Clip(options), client.WithSubResourceBody(sent))...), from)
	})
}

// Patch changes the subresource.
func (s subresource) Patch(ctx context.Context, target client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
	subject := target
	if settings := (&client.SubResourcePatchOptions{}).ApplyOptions(options); settings.SubResourceBody != nil {
		subject = settings.SubResourceBody
	}
	spared, err := s.parent.withoutRecordChanges(ctx, subject, patch)
	if err != nil {
		return err
	}
	return notServed(s.SubResourceClient.Patch(ctx, target, spared, options...), target)
}

// preserveRecords sends the object with the records that the API server has now, and fills it from the response.
func (r SplitClient) preserveRecords(ctx context.Context, from client.Object, send func(client.Object) error) error {
	kind, handled := r.handled(from)
	if !handled {
		return send(from)
	}
	var err error
	for range carryTries {
		sent, pinned, failed := r.withRecords(ctx, kind, from)
		if failed != nil {
			return failed
		}
		if err = send(sent); err == nil {
			return fill(from, sent)
		}
		if !pinned || !conflicted(err) {
			return err
		}
	}
	return err
}

// handled returns the kind of an object and whether objects of the kind have records.
func (r SplitClient) handled(candidate client.Object) (schema.GroupVersionKind, bool) {
	kind, err := apiutil.GVKForObject(candidate, r.Scheme())
	return kind, err == nil && r.Cached.handles(kind)
}

// withRecords returns the object to send. A copy with a resource version replaces only that version, so the records cannot be newer than
// those just read. A copy without one gets the resource version just read, for kinds for which the API server would accept it without.
func (r SplitClient) withRecords(ctx context.Context, kind schema.GroupVersionKind, from client.Object) (sent *unstructured.Unstructured, pinned bool, err error) {
	body, err := runtime.DefaultUnstructuredConverter.ToUnstructured(from.DeepCopyObject())
	if err != nil {
		return nil, false, fmt.Errorf("encode %s %s: %w", kind.Kind, from.GetName(), err)
	}
	now, err := r.now(ctx, kind, from)
	if err != nil {
		return nil, false, err
	}
	sent = &unstructured.Unstructured{Object: record.Carry(now.Object, body)}
	sent.SetGroupVersionKind(kind)
	if pinned = sent.GetResourceVersion() == "" && scheme.Scheme.Recognizes(kind); pinned {
		sent.SetResourceVersion(now.GetResourceVersion())
	}
	return sent, pinned, nil
}

// now reads the live object. The result is empty if there is none.
func (r SplitClient) now(ctx context.Context, kind schema.GroupVersionKind, of client.Object) (*unstructured.Unstructured, error) {
	found := &unstructured.Unstructured{}
	found.SetGroupVersionKind(kind)
	key := client.ObjectKeyFromObject(of)
	if err := notServed(r.Client.Get(ctx, key, found), of); client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("read %s %s to keep its record: %w", kind.Kind, key, err)
	}
	return found, nil
}

// fill copies the response into the caller's object.
func fill(target client.Object, answer *unstructured.Unstructured) error {
	if free, is := target.(*unstructured.Unstructured); is {
		free.Object = answer.Object
		return nil
	}
	named := target.GetObjectKind().GroupVersionKind()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(answer.Object, target); err != nil {
		return fmt.Errorf("decode %s %s: %w", answer.GetKind(), answer.GetName(), err)
	}
	target.GetObjectKind().SetGroupVersionKind(named)
	return nil
}

// withoutRecordChanges returns the patch without its changes of records.
func (r SplitClient) withoutRecordChanges(ctx context.Context, target client.Object, patch client.Patch) (client.Patch, error) {
	kind, handled := r.handled(target)
	merges := patch.Type() == types.MergePatchType || patch.Type() == types.StrategicMergePatchType
	if !handled || !merges {
		return patch, nil
	}
	data, err := patch.Data(target)
	if err != nil {
		return nil, fmt.Errorf("compute patch of %s %s: %w", kind.Kind, target.GetName(), err)
	}
	var merge object.Body
	if err := jsonutil.Unmarshal(data, &merge); err != nil || !record.MayChangeRecords(merge) {
		return patch, nil //nolint:nilerr // The API server reports an invalid patch.
	}
	now, err := r.now(ctx, kind, target)
	if err != nil {
		return nil, err
	}
	spared, err := json.Marshal(record.WithoutRecordChanges(merge, now.Object))
	if err != nil {
		return nil, fmt.Errorf("encode patch of %s %s: %w", kind.Kind, target.GetName(), err)
	}
	return client.RawPatch(patch.Type(), spared), nil
}
