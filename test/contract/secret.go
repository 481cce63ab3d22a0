package contract

import (
	"encoding/base64"
	"net/http"
)

// invalid checks a refusal of a new object that names all the fields.
func (t target) invalid(body object, texts ...string) {
	t.w.Helper()
	t.post(body).refused(http.StatusUnprocessableEntity, "Invalid", texts...)
}

func secretTypes() []behaviour {
	secret := func(w *world, kind string, data object) object {
		return secretsOf(w).new("a", object{"type": kind, "stringData": data})
	}
	const docker = "kubernetes.io/dockerconfigjson"
	return []behaviour{
		{"secret: a tls Secret without keys is 422", func(w *world) {
			secretsOf(w).invalid(secret(w, "kubernetes.io/tls", object{}), "data[tls.crt]: Required value", "data[tls.key]: Required value")
			secretsOf(w).invalid(secret(w, "kubernetes.io/tls", object{"tls.crt": "x"}), "data[tls.key]: Required value")
			secretsOf(w).post(secret(w, "kubernetes.io/tls", object{"tls.crt": "", "tls.key": ""})).is(http.StatusCreated)
		}},
		{"secret: a basic-auth Secret without keys is 422", func(w *world) {
			secretsOf(w).invalid(secret(w, "kubernetes.io/basic-auth", object{}), "data[username]: Required value", "data[password]: Required value")
			secretsOf(w).post(secret(w, "kubernetes.io/basic-auth", object{"username": "x"})).is(http.StatusCreated)
		}},
		{"secret: a dockerconfigjson Secret that is no JSON is 422", func(w *world) {
			secretsOf(w).invalid(secret(w, docker, object{}), "data[.dockerconfigjson]: Required value")
			secretsOf(w).invalid(secret(w, docker, object{".dockerconfigjson": "{"}),
				`data[.dockerconfigjson]: Invalid value: "<secret contents redacted>": unexpected end of JSON input`)
			secretsOf(w).post(secret(w, docker, object{".dockerconfigjson": "{}"})).is(http.StatusCreated)
		}},
		{"secret: a token without an account is 422", func(w *world) {
			secretsOf(w).invalid(secret(w, "kubernetes.io/service-account-token", object{}),
				"metadata.annotations[kubernetes.io/service-account.name]: Required value")
		}},
		{"secret: an ssh-auth Secret without a key is 422", func(w *world) {
			secretsOf(w).invalid(secret(w, "kubernetes.io/ssh-auth", object{}), "data[ssh-privatekey]: Required value")
		}},
		{"secret: a key that its type needs cannot be removed", func(w *world) {
			secretsOf(w).post(secret(w, "kubernetes.io/tls", object{"tls.crt": "x", "tls.key": "y"})).is(http.StatusCreated)
			secretsOf(w).merge("a", object{"data": object{"tls.key": nil}}).refused(http.StatusUnprocessableEntity, "Invalid", "data[tls.key]: Required value")
		}},
		{"configmap: a key in data and in binaryData is 422", func(w *world) {
			binary := base64.StdEncoding.EncodeToString([]byte("x"))
			w.configMaps().invalid(w.configMaps().new("a", object{"data": object{"k": "x"}, "binaryData": object{"k": binary}}),
				`data[k]: Invalid value: "k": duplicate of key present in binaryData`)
		}},
	}
}
