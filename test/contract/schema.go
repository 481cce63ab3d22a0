package contract

import (
	"net/http"
	"strings"
)

func pruning() []behaviour {
	return []behaviour{
		{"schema: unknown fields are pruned and warned of", func(w *world) {
			answer := w.widgets().post(w.widgets().new("a", object{"spec.size": 3, "spec.bogus": 1, "extra": "x"}))
			made := answer.is(http.StatusCreated)
			w.want(made, "spec.bogus", nil)
			w.want(made, "extra", nil)
			warnings := strings.Join(answer.header.Values("Warning"), "\n")
			if !strings.Contains(warnings, `unknown field \"spec.bogus\"`) || !strings.Contains(warnings, `unknown field \"extra\"`) {
				w.Errorf("the warnings are %s", warnings)
			}
		}},
		{"schema: unknown fields are 400 if strict validation is asked for", func(w *world) {
			w.widgets().post(w.widgets().new("a", object{"spec.bogus": 1}), "fieldValidation", "Strict").refused(http.StatusBadRequest, "BadRequest",
				`Widget in version "v1" cannot be handled as a Widget: strict decoding error: unknown field "spec.bogus"`)
		}},
		{"schema: with fieldValidation=Ignore there is no warning about unknown fields", func(w *world) {
			answer := w.widgets().post(w.widgets().new("a", object{"spec.bogus": 1}), "fieldValidation", "Ignore")
			answer.is(http.StatusCreated)
			if warning := answer.header.Get("Warning"); warning != "" {
				w.Errorf("there is the warning %s", warning)
			}
		}},
		{"schema: unknown fields are kept where the schema says so", func(w *world) {
			made := w.widgets().create("a", object{"spec.free": object{"any": object{"thing": 1}}})
			w.want(made, "spec.free", object{"any": object{"thing": 1}})
		}},
		{"schema: an unknown field of the status is pruned", func(w *world) {
			w.widgets().create("a")
			w.want(w.widgets().merge("a/status", object{"status": object{"bogus": 1, "phase": "x"}}).ok(), "status.bogus", nil)
		}},
		{"schema: unknown fields of a built-in kind are pruned and warned of", func(w *world) {
			answer := w.configMaps().post(w.configMaps().new("a", object{"bogus": "x"}))
			w.want(answer.is(http.StatusCreated), "bogus", nil)
			if warning := answer.header.Get("Warning"); !strings.Contains(warning, `unknown field \"bogus\"`) {
				w.Errorf("the warning is %s", warning)
			}
		}},
		{"schema: unknown metadata is pruned", func(w *world) {
			w.want(w.widgets().create("a", object{"metadata.bogus": "x"}), "metadata.bogus", nil)
		}},
		{"schema: a null is dropped, and kept where the schema allows it", func(w *world) {
			body := w.widgets().new("a")
			body["spec"] = map[string]any{"short": nil, "note": nil}
			made := w.widgets().post(body).is(http.StatusCreated)
			spec, _ := made.at("spec").(map[string]any)
			if _, found := spec["short"]; found {
				w.Errorf("the spec is %v", spec)
			}
			if _, found := spec["note"]; !found {
				w.Errorf("the spec is %v", spec)
			}
		}},
	}
}

func defaulting() []behaviour {
	return []behaviour{
		{"schema: defaults are set where the parent is there", func(w *world) {
			made := w.widgets().create("a", object{"spec.nested": object{"a": 1}, "spec.parts": []object{{"name": "x"}}})
			w.want(made, "spec.size", 1)
			w.want(made, "spec.nested", object{"a": 1, "b": 2})
			w.want(made, "spec.parts.0.value", "none")
		}},
		{"schema: defaults are not set where the parent is absent", func(w *world) {
			w.want(w.widgets().create("a"), "spec", nil)
		}},
		{"schema: a default replaces a null", func(w *world) {
			body := w.widgets().new("a")
			body["spec"] = map[string]any{"size": nil}
			w.want(w.widgets().post(body).ok(), "spec.size", 1)
		}},
		{"schema: a default comes back when the field is removed", func(w *world) {
			w.widgets().create("a", object{"spec.size": 5})
			w.want(w.widgets().json("a", op{"remove", "/spec/size", nil}).ok(), "spec.size", 1)
		}},
		{"schema: defaults of the status are set when it is written", func(w *world) {
			w.widgets().create("a")
			w.want(w.widgets().merge("a/status", object{"status": object{"phase": "x"}}).ok(), "status.ready", false)
		}},
	}
}

// invalid checks that an object with these fields is refused with this sentence.
func invalid(name string, fields object, sentence string) behaviour {
	return behaviour{"schema: " + name + " is 422", func(w *world) {
		w.Helper()
		w.widgets().post(w.widgets().new("a", fields)).refused(http.StatusUnprocessableEntity, "Invalid",
			`Widget.contract.einmal.dev "a" is invalid: `, sentence)
	}}
}

func validating() []behaviour {
	return []behaviour{
		invalid("a number that is too small", object{"spec.size": -1},
			"spec.size: Invalid value: -1: spec.size in body should be greater than or equal to 0"),
		invalid("a number that is too great", object{"spec.size": 101},
			"spec.size: Invalid value: 101: spec.size in body should be less than or equal to 100"),
		invalid("a text for a number", object{"spec.size": "3"},
			`spec.size: Invalid value: "string": spec.size in body must be of type integer: "string"`),
		invalid("a value that is not listed", object{"spec.color": "pink"},
			`spec.color: Unsupported value: "pink": supported values: "red", "green", "blue"`),
		invalid("a text that is too long", object{"spec.short": "abcdef"}, "spec.short: Too long: may not be more than 5 bytes"),
		invalid("a text of the wrong pattern", object{"spec.short": "ABC"},
			`spec.short: Invalid value: "ABC": spec.short in body should match '^[a-z]*$'`),
		invalid("a missing field", object{"spec.parts": []object{{"value": "x"}}}, "spec.parts[0].name: Required value"),
		invalid("a key that is there twice", object{"spec.parts": []object{{"name": "x"}, {"name": "x"}}},
			`spec.parts[1]: Duplicate value: {"name":"x"}`),
		invalid("a member of a set that is there twice", object{"spec.tags": []string{"x", "x"}}, `spec.tags[1]: Duplicate value: "x"`),
		invalid("a time that is none", object{"spec.at": "noon"},
			`spec.at: Invalid value: "noon": spec.at in body must be of type date-time: "noon"`),
		{"schema: a number or a text where either may be", func(w *world) {
			w.want(w.widgets().create("a", object{"spec.port": 80}), "spec.port", 80)
			w.want(w.widgets().create("b", object{"spec.port": "http"}), "spec.port", "http")
			w.widgets().post(w.widgets().new("c", object{"spec.port": true})).is(http.StatusUnprocessableEntity)
		}},
		{"schema: numbers keep their form", func(w *world) {
			made := w.widgets().create("a", object{"spec.ratio": 0.5, "spec.low": 9007199254740993})
			w.want(made, "spec.ratio", 0.5)
			w.want(made, "spec.low", 9007199254740993)
		}},
		{"schema: all problems are reported at once, as causes", func(w *world) {
			refused := w.widgets().post(w.widgets().new("a", object{"spec.size": -1, "spec.short": "ABC"})).is(http.StatusUnprocessableEntity)
			if causes, _ := refused.at("details.causes").([]any); len(causes) != 2 {
				w.Errorf("the causes are %v", causes)
			}
		}},
		{"schema: what was invalid before may stay", func(w *world) {
			w.widgets().create("a", object{"spec.size": 3})
			w.widgets().merge("a", object{"spec": object{"color": "pink"}}).is(http.StatusUnprocessableEntity)
			w.widgets().merge("a", object{"spec": object{"color": "red"}}).is(http.StatusOK)
		}},
	}
}

func expressing() []behaviour {
	return []behaviour{
		{"rules: a broken rule is 422 with its message", func(w *world) {
			refused := w.widgets().post(w.widgets().new("a", object{"spec.low": 5, "spec.high": 3})).refused(http.StatusUnprocessableEntity, "Invalid",
				`Widget.contract.einmal.dev "a" is invalid: spec: Invalid value: low must not exceed high`)
			w.want(refused, "details.causes.0.field", "spec")
			w.want(refused, "details.causes.0.reason", "FieldValueInvalid")
		}},
		{"rules: a rule about the old value is not asked of a new object", func(w *world) {
			w.widgets().create("a", object{"spec.mode": "x"})
		}},
		{"rules: a rule about the old value is asked of a change", func(w *world) {
			w.widgets().create("a", object{"spec.mode": "x"})
			w.widgets().merge("a", object{"spec": object{"mode": "y"}}).refused(http.StatusUnprocessableEntity, "Invalid",
				`Widget.contract.einmal.dev "a" is invalid: spec.mode: Invalid value: "y": mode cannot be changed`)
			w.widgets().merge("a", object{"spec": object{"mode": "x", "size": 9}}).ok()
		}},
		{"rules: a rule about the old value is not asked of a field that goes", func(w *world) {
			w.widgets().create("a", object{"spec.mode": "x"})
			w.widgets().merge("a", object{"spec": object{"mode": nil}}).ok()
			w.widgets().merge("a", object{"spec": object{"mode": "y"}}).ok()
		}},
		{"rules: a rule of the parent keeps a field from going", func(w *world) {
			w.widgets().create("a", object{"spec.once": "x"})
			w.widgets().merge("a", object{"spec": object{"once": nil}}).refused(http.StatusUnprocessableEntity, "Invalid", "once cannot be taken away")
		}},
		{"rules: are not asked while the object is invalid", func(w *world) {
			w.widgets().post(w.widgets().new("a", object{"spec.low": 5, "spec.high": 3, "spec.color": "pink"})).refused(
				http.StatusUnprocessableEntity, "Invalid", "some validation rules were not checked because the object was invalid")
		}},
		{"rules: apply by server-side apply as well", func(w *world) {
			w.widgets().apply("one", w.widgets().new("a", object{"spec.mode": "x"})).ok()
			w.widgets().apply("one", w.widgets().new("a", object{"spec.mode": "y"})).refused(http.StatusUnprocessableEntity, "Invalid",
				"mode cannot be changed")
		}},
	}
}

// expressingMore tests what rules can read, and which field and reason a refusal names.
func expressingMore() []behaviour {
	return []behaviour{
		{"rules: one of the whole object is about its name", func(w *world) {
			refused := w.widgets().post(w.widgets().new("reserved")).refused(http.StatusUnprocessableEntity, "Invalid",
				`Widget.contract.einmal.dev "reserved" is invalid: <nil>: Invalid value: the name is reserved`)
			w.want(refused, "details.causes.0.field", "<nil>")
		}},
		{"rules: one names another field and another reason", func(w *world) {
			refused := w.widgets().post(w.widgets().new("a", object{"spec.pause": "1m"})).refused(http.StatusUnprocessableEntity, "Invalid",
				`Widget.contract.einmal.dev "a" is invalid: spec.amount: Required value: a pause needs an amount`)
			w.want(refused, "details.causes.0.field", "spec.amount")
			w.want(refused, "details.causes.0.reason", "FieldValueRequired")
		}},
		{"rules: compare quantities, and name the old value", func(w *world) {
			w.widgets().post(w.widgets().new("a", object{"spec.amount": "much"})).refused(http.StatusUnprocessableEntity, "Invalid",
				`Widget.contract.einmal.dev "a" is invalid: spec.amount: Invalid value: "much": must be a quantity`)
			w.widgets().create("a", object{"spec.amount": "1Gi"})
			w.widgets().merge("a", object{"spec": object{"amount": "512Mi"}}).refused(http.StatusUnprocessableEntity, "Invalid",
				`Widget.contract.einmal.dev "a" is invalid: spec.amount: Invalid value: "512Mi": must not shrink from 1Gi`)
			w.widgets().merge("a", object{"spec": object{"amount": "1025Mi"}}).ok()
		}},
		{"rules: compare durations", func(w *world) {
			w.widgets().post(w.widgets().new("a", object{"spec.amount": 1, "spec.pause": "61m"})).refused(http.StatusUnprocessableEntity, "Invalid",
				`Widget.contract.einmal.dev "a" is invalid: spec.pause: Invalid value: "61m": must be at most 1h`)
			w.widgets().create("a", object{"spec.amount": 1, "spec.pause": "60m"})
		}},
		{"rules: one that fails is 422 with what failed", func(w *world) {
			w.widgets().post(w.widgets().new("a", object{"spec.amount": 1, "spec.pause": "soon"})).refused(http.StatusUnprocessableEntity, "Invalid",
				`spec.pause: Invalid value: "string": type conversion error from 'string' to 'google.protobuf.Duration'`)
		}},
	}
}
