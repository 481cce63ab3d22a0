package kube

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"

	"k8s.io/apimachinery/pkg/watch"
)

// replacerKey is the context key of the replacer of a request.
type replacerKey struct{}

// replacer returns an object of a response, or what comes in its place. The objects of a list are Added.
type replacer func(object []byte, event watch.EventType) []byte

// Wrap returns a transport that replaces objects in the responses to lists and watches that ask for it.
func (t *Tolerance) Wrap(next http.RoundTripper) http.RoundTripper {
	return replacingTransport{next: next}
}

type replacingTransport struct{ next http.RoundTripper }

// WrappedRoundTripper gives client-go access to the wrapped transport.
func (t replacingTransport) WrappedRoundTripper() http.RoundTripper { return t.next }

// RoundTrip sends a request.
func (t replacingTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	answer, err := t.next.RoundTrip(request)
	replace, asked := request.Context().Value(replacerKey{}).(replacer)
	if err != nil || !asked || answer.StatusCode != http.StatusOK || !isJSON(answer) {
		return answer, err //nolint:wrapcheck // A transport returns the errors of the one below.
	}
	if TargetOf(request).watch {
		answer.Body = &replacingBody{from: answer.Body, frames: json.NewDecoder(answer.Body), replace: replace}
	} else {
		answer.Body = &replacingList{from: answer.Body, replace: replace}
	}
	answer.ContentLength = -1
	answer.Header.Del("Content-Length")
	return answer, nil
}

// isJSON reports whether the content of a response is JSON. Protocol buffers of the API server fit their Go types.
func isJSON(answer *http.Response) bool {
	kind, _, err := mime.ParseMediaType(answer.Header.Get("Content-Type"))
	return err == nil && kind == "application/json"
}

// replacingBody is the body of a watch. Each frame is an event.
type replacingBody struct {
	from    io.ReadCloser
	frames  *json.Decoder
	replace replacer
	rest    bytes.Buffer
}

// Read reads the events.
func (b *replacingBody) Read(into []byte) (int, error) {
	for b.rest.Len() == 0 {
		var frame json.RawMessage
		if err := b.frames.Decode(&frame); err != nil {
			return 0, err //nolint:wrapcheck // client-go compares some errors by identity.
		}
		b.rest.Write(b.event(frame))
		b.rest.WriteByte('\n')
	}
	return b.rest.Read(into) //nolint:wrapcheck // It is not empty.
}

// Close closes the body.
func (b *replacingBody) Close() error { return b.from.Close() } //nolint:wrapcheck // As above.

func (b *replacingBody) event(frame []byte) []byte {
	var event struct {
		Type   watch.EventType `json:"type"`
		Object json.RawMessage `json:"object"`
	}
	if json.Unmarshal(frame, &event) != nil {
		return frame
	}
	switch event.Type {
	case watch.Added, watch.Modified, watch.Deleted:
		event.Object = b.replace(event.Object, event.Type)
	case watch.Bookmark, watch.Error:
	}
	replaced, err := json.Marshal(event)
	if err != nil {
		return frame
	}
	return replaced
}

// replacingList is the body of a list.
type replacingList struct {
	from    io.ReadCloser
	replace replacer
	content io.Reader
}

// Read reads the list.
func (l *replacingList) Read(into []byte) (int, error) {
	if l.content == nil {
		text, err := io.ReadAll(l.from)
		if err != nil {
			return 0, fmt.Errorf("read list: %w", err)
		}
		l.content = bytes.NewReader(l.list(text))
	}
	return l.content.Read(into) //nolint:wrapcheck // It is in memory.
}

// Close closes the body.
func (l *replacingList) Close() error { return l.from.Close() } //nolint:wrapcheck // As above.

func (l *replacingList) list(text []byte) []byte {
	var list map[string]json.RawMessage
	var items []json.RawMessage
	if json.Unmarshal(text, &list) != nil || json.Unmarshal(list["items"], &items) != nil {
		return text
	}
	for i, item := range items {
		items[i] = l.replace(item, watch.Added)
	}
	replaced, err := json.Marshal(items)
	if err != nil {
		return text
	}
	list["items"] = replaced
	if replaced, err = json.Marshal(list); err != nil {
		return text
	}
	return replaced
}
