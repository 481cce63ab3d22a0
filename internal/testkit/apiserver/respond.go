package apiserver

import (
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/einmal-operators/einmal/internal/testkit/apiserver/kind"
)

// respond writes an object.
func respond(w http.ResponseWriter, code int, object any) {
	respondAs(w, code, runtime.ContentTypeJSON, object)
}

func respondAs(w http.ResponseWriter, code int, mediaType string, object any) {
	text, err := json.Marshal(object)
	if err != nil {
		code, text = http.StatusInternalServerError, []byte(err.Error())
	}
	w.Header().Set("Content-Type", mediaType)
	w.WriteHeader(code)
	_, _ = w.Write(append(text, '\n')) // The client may be gone.
}

// refuse writes an error as a Status.
func refuse(w http.ResponseWriter, err error) {
	status := statusOf(err)
	if details := status.Details; details != nil && details.RetryAfterSeconds > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(details.RetryAfterSeconds)))
	}
	respond(w, int(status.Code), status)
}

func statusOf(err error) metav1.Status {
	status := metav1.Status{Status: metav1.StatusFailure, Message: fmt.Sprint(err), Code: http.StatusInternalServerError}
	var known apierrors.APIStatus
	if errors.As(err, &known) {
		status = known.Status()
	}
	status.Kind, status.APIVersion = "Status", "v1"
	return status
}

func warn(w http.ResponseWriter, warnings []string) {
	for _, warning := range warnings {
		w.Header().Add("Warning", "299 - "+strconv.Quote(warning))
	}
}

// form is how a client wants objects: whole, or their metadata only.
type form struct{ metadataOnly bool }

// formOf reads what the client accepts. Tables are not made: clients that ask for them accept whole objects as well.
func formOf(r *http.Request) (form, error) {
	accept := r.Header.Get("Accept")
	if accept == "" {
		return form{}, nil
	}
	for clause := range strings.SplitSeq(accept, ",") {
		mediaType, parameters, err := mime.ParseMediaType(clause)
		if err != nil {
			continue
		}
		known := mediaType == runtime.ContentTypeJSON || mediaType == "*/*" || mediaType == "application/*"
		switch as := parameters["as"]; {
		case known && strings.HasPrefix(as, "PartialObjectMetadata"):
			return form{metadataOnly: true}, nil
		case known && as == "":
			return form{}, nil
		}
	}
	return form{}, errNotAccepted(runtime.ContentTypeJSON)
}

// errNotAccepted is the answer to a client that accepts no form in which the server can answer.
func errNotAccepted(served string) error {
	return apierrors.NewGenericServerResponse(http.StatusNotAcceptable, "", emptyResource(), "",
		"only the following media types are accepted: "+served, 0, false)
}

// apply shows an object in the form.
func (f form) apply(object *unstructured.Unstructured) any {
	if !f.metadataOnly {
		return object.Object
	}
	return map[string]any{
		"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": object.Object["metadata"],
	}
}

// list shows a list of objects in the form.
func (f form) list(of *kind.Kind, found listed) any {
	items := make([]any, len(found.objects))
	for i, object := range found.objects {
		items[i] = f.apply(object)
	}
	listKind, version := of.List, of.GroupVersion().String()
	if f.metadataOnly {
		listKind, version = "PartialObjectMetadataList", "meta.k8s.io/v1"
	}
	return map[string]any{"apiVersion": version, "kind": listKind, "metadata": found.metadata(), "items": items}
}
