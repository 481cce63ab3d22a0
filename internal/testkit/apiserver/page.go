package apiserver

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/storage"

	"github.com/einmal-operators/einmal/internal/testkit/apiserver/store"
)

// The messages of a real API server for a continue token whose resource version is compacted, and for any other version.
const (
	tokenExpired = "The provided continue parameter is too old to display a consistent list result. You can start a new list " +
		"without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. " +
		"Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted " +
		"between the time the first chunk was returned and now may show up in the list."
	versionExpired = "The resourceVersion for the provided list is too old."
)

// keyPrefix is what a key in a continue token begins with. The first "/" belongs to the prefix.
const keyPrefix = "/"

// latest is the revision in a continue token that continues at the present, after the snapshot of the list has expired.
const latest = -1

// page is the part of a list that one request asks for.
type page struct {
	// after is the key of the last object of the previous page; empty on the first page.
	after string
	// revision is the snapshot to list; zero is the present.
	revision int64
	// limit is the most objects on the page; zero is no limit.
	limit int64
}

// pageOf reads what a client asks for.
func pageOf(options *internalversion.ListOptions, namespace string) (page, error) {
	revision, err := revisionOf(options.ResourceVersion)
	if err != nil {
		return page{}, err
	}
	if options.Continue != "" {
		if options.ResourceVersion != "" && options.ResourceVersion != "0" {
			return page{}, apierrors.NewBadRequest("specifying resource version is not allowed when using continue")
		}
		after, revision, err := storage.DecodeContinue(options.Continue, prefixOf(namespace))
		if err != nil {
			return page{}, apierrors.NewBadRequest(fmt.Sprintf("invalid continue token: %v", err))
		}
		return page{after: after, revision: revision, limit: options.Limit}, nil
	}
	asked := page{revision: revision, limit: options.Limit}
	if options.ResourceVersion == "0" {
		asked.limit = 0 // It is answered from the cache of the API server, which has no pages.
	}
	return asked, nil
}

func prefixOf(namespace string) string {
	if namespace == "" {
		return keyPrefix
	}
	return keyPrefix + namespace + "/"
}

// keyOf is the name of an object in a continue token. Keys sort as objects are listed.
func keyOf(object *unstructured.Unstructured) string {
	if namespace := object.GetNamespace(); namespace != "" {
		return prefixOf(namespace) + object.GetName()
	}
	return keyPrefix + object.GetName()
}

// exactly reports whether the list must show the revision that the client names, not a newer one.
func (p page) exactly(options *internalversion.ListOptions) bool {
	if options.Continue != "" {
		return p.revision != latest
	}
	return options.ResourceVersionMatch == metav1.ResourceVersionMatchExact ||
		options.ResourceVersionMatch == "" && p.limit > 0 && p.revision > 0
}

// listed is the answer to a request for a page.
type listed struct {
	objects   []*unstructured.Unstructured
	revision  int64
	next      string
	remaining *int64
}

// list shows the objects of a page.
func (p page) list(tx *store.Tx, chosen selection, options *internalversion.ListOptions) (listed, error) {
	current := tx.Revision()
	if err := notAhead(p.revision, current); err != nil {
		return listed{}, err
	}
	answer := listed{revision: current}
	stored := tx.List(chosen.kind.Resource(), chosen.namespace)
	if p.exactly(options) && p.revision < current {
		var err error
		if stored, err = tx.ListAt(chosen.kind.Resource(), chosen.namespace, p.revision); err != nil {
			return listed{}, p.expired(err, chosen.namespace)
		}
		answer.revision = p.revision
	}
	start, _ := slices.BinarySearchFunc(stored, p.after, func(object *unstructured.Unstructured, after string) int {
		if keyOf(object) < after {
			return -1
		}
		return 1
	})
	err := p.fill(&answer, chosen, stored[start:])
	return answer, err
}

// fill puts the chosen objects on the page until it is full.
func (p page) fill(answer *listed, chosen selection, stored []*unstructured.Unstructured) error {
	for i, object := range stored {
		seen := view(chosen.kind, object)
		if !chosen.matches(seen) {
			continue
		}
		if full := p.limit > 0 && int64(len(answer.objects)) == p.limit; full {
			last := keyOf(answer.objects[len(answer.objects)-1])
			next, err := storage.EncodeContinue(last+"\x00", prefixOf(chosen.namespace), answer.revision)
			if err != nil {
				return fmt.Errorf("encode continue token: %w", err)
			}
			answer.next = next
			if chosen.labels.Empty() && chosen.fields.Empty() {
				left := int64(len(stored) - i)
				answer.remaining = &left
			}
			return nil
		}
		answer.objects = append(answer.objects, seen)
	}
	return nil
}

// expired is the answer to a page of a snapshot that is not known any more. It offers to continue at the present.
func (p page) expired(err error, namespace string) error {
	if !errors.Is(err, store.ErrTooOld) {
		return err
	}
	if p.after == "" {
		return apierrors.NewResourceExpired(versionExpired)
	}
	refused := apierrors.NewResourceExpired(tokenExpired)
	if refused.ErrStatus.Continue, err = storage.EncodeContinue(p.after, prefixOf(namespace), latest); err != nil {
		return fmt.Errorf("encode continue token: %w", err)
	}
	return refused
}

// metadata is the metadata of the list.
func (l listed) metadata() map[string]any {
	metadata := map[string]any{"resourceVersion": strconv.FormatInt(l.revision, 10)}
	if l.next != "" {
		metadata["continue"] = l.next
	}
	if l.remaining != nil {
		metadata["remainingItemCount"] = *l.remaining
	}
	return metadata
}
