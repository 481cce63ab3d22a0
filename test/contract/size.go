package contract

import (
	"encoding/base64"
	"net/http"
	"strings"
)

const mebibyte = 1024 * 1024

func sizing() []behaviour {
	long := func(size int) string { return strings.Repeat("x", size) }
	return []behaviour{
		{"size: a ConfigMap holds 1 MiB and no more", func(w *world) {
			w.configMaps().create("a", object{"data": object{"k": long(mebibyte)}})
			refused := w.configMaps().post(w.configMaps().new("b", object{"data": object{"k": long(mebibyte + 1)}})).refused(
				http.StatusUnprocessableEntity, "Invalid", "Too long: may not be more than 1048576 bytes")
			w.want(refused, "details.causes.0.reason", "FieldValueTooLong")
		}},
		{"size: data and binaryData of a ConfigMap count together", func(w *world) {
			binary := base64.StdEncoding.EncodeToString([]byte(long(mebibyte / 2)))
			body := w.configMaps().new("a", object{"data": object{"k": long(mebibyte/2 + 1)}, "binaryData": object{"b": binary}})
			w.configMaps().post(body).refused(http.StatusUnprocessableEntity, "Invalid", "Too long")
		}},
		{"size: a Secret holds 1 MiB and no more", func(w *world) {
			secrets := w.in("v1", "secrets", "Secret")
			secrets.create("a", object{"stringData": object{"k": long(mebibyte)}})
			secrets.merge("a", object{"stringData": object{"l": "x"}}).refused(
				http.StatusUnprocessableEntity, "Invalid", "data: Too long: may not be more than 1048576 bytes")
		}},
		{"size: a custom object of 1.5 MB is stored", func(w *world) {
			w.widgets().create("a", object{"spec": object{"free": object{"k": long(1_500_000)}}})
		}},
		{"size: a custom object of more than 1.5 MiB is 500", func(w *world) {
			body := w.widgets().new("a", object{"spec": object{"free": object{"k": long(1_700_000)}}})
			tooLarge(w.widgets().post(body), "etcdserver: request is too large")
			w.widgets().create("a")
			tooLarge(w.widgets().merge("a", object{"spec": object{"free": object{"k": long(1_700_000)}}}), "etcdserver: request is too large")
		}},
		{"size: a custom object of more than 2 MiB is 500", func(w *world) {
			body := w.widgets().new("a", object{"spec": object{"free": object{"k": long(2_200_000)}}})
			tooLarge(w.widgets().post(body), "rpc error: code = ResourceExhausted desc = trying to send message larger than max")
		}},
	}
}

// tooLarge checks the refusal of the storage, which has no reason.
func tooLarge(a answer, text string) {
	a.w.Helper()
	refused := a.is(http.StatusInternalServerError)
	if refused.text("reason") != "" || !strings.Contains(refused.text("message"), text) {
		a.w.Errorf("the refusal is %s, want no reason and in the message %q", a.body, text)
	}
}
