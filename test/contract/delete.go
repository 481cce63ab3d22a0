package contract

import (
	"net/http"
	"time"
)

const (
	hold = "contract.einmal.dev/hold"
	more = "contract.einmal.dev/more"
)

func deleting() []behaviour {
	return []behaviour{
		{"delete: the object is gone and the answer tells what it was", func(w *world) {
			made := w.widgets().create("a")
			status := w.widgets().delete("a").is(http.StatusOK)
			w.want(status, "kind", "Status")
			w.want(status, "status", "Success")
			w.want(status, "details", object{"name": "a", "group": group, "kind": "widgets", "uid": made.uid()})
			w.widgets().read("a").refused(http.StatusNotFound, "NotFound")
		}},
		{"delete: a missing object is 404", func(w *world) {
			refused := w.widgets().delete("a").refused(http.StatusNotFound, "NotFound", `widgets.contract.einmal.dev "a" not found`)
			w.want(refused, "details", object{"name": "a", "group": group, "kind": "widgets"})
		}},
		{"delete: another uid is 409", func(w *world) {
			made := w.widgets().create("a")
			w.widgets().delete("a", object{"preconditions": object{"uid": "other"}}).refused(http.StatusConflict, "Conflict",
				"the UID in the precondition (other) does not match the UID in record ("+made.uid()+")")
			w.widgets().delete("a", object{"preconditions": object{"uid": made.uid()}}).is(http.StatusOK)
		}},
		{"delete: another resourceVersion is 409", func(w *world) {
			made := w.widgets().create("a")
			w.widgets().merge("a", object{"spec": object{"size": 4}}).ok()
			w.widgets().delete("a", object{"preconditions": object{"resourceVersion": made.version()}}).refused(http.StatusConflict, "Conflict",
				"the ResourceVersion in the precondition ("+made.version()+") does not match")
		}},
		{"delete: an unknown propagation policy is 422", func(w *world) {
			w.widgets().create("a")
			w.widgets().delete("a", object{"propagationPolicy": "Sideways"}).refused(http.StatusUnprocessableEntity, "Invalid", "propagationPolicy")
		}},
		{"delete: a dry run changes nothing", func(w *world) {
			w.widgets().create("a")
			w.widgets().delete("a", object{"dryRun": []string{"All"}}).is(http.StatusOK)
			w.widgets().get("a")
		}},
		{"delete: a collection by label", func(w *world) {
			w.widgets().create("a", object{"metadata.labels": object{"go": "yes"}})
			w.widgets().create("b")
			c := call{method: http.MethodDelete, path: w.widgets().collection(), query: query("labelSelector", "go=yes")}
			w.want(w.send(c).ok(), "items.0.metadata.name", "a")
			w.widgets().read("a").is(http.StatusNotFound)
			w.widgets().get("b")
		}},
	}
}

func finalizing() []behaviour {
	return []behaviour{
		{"finalizer: a deletion is marked and the object stays", func(w *world) {
			w.widgets().create("a", object{"metadata.finalizers": []string{hold}})
			left := w.widgets().delete("a").is(http.StatusOK)
			w.want(left, "kind", "Widget")
			w.want(left, "metadata.deletionGracePeriodSeconds", 0)
			w.want(left, "metadata.generation", 2)
			when, err := time.Parse(time.RFC3339, left.text("metadata.deletionTimestamp"))
			if err != nil || when.IsZero() {
				w.Errorf("the deletion is marked with %q", left.text("metadata.deletionTimestamp"))
			}
		}},
		{"finalizer: a second deletion changes nothing", func(w *world) {
			w.widgets().create("a", object{"metadata.finalizers": []string{hold}})
			one, two := w.widgets().delete("a").ok(), w.widgets().delete("a").ok()
			w.want(two, "metadata.resourceVersion", one.version())
			w.want(two, "metadata.deletionTimestamp", one.text("metadata.deletionTimestamp"))
		}},
		{"finalizer: the object goes with the last one", func(w *world) {
			w.widgets().create("a", object{"metadata.finalizers": []string{hold, more}})
			w.widgets().delete("a").ok()
			w.widgets().json("a", op{"remove", "/metadata/finalizers/0", nil}).ok()
			w.want(w.widgets().get("a"), "metadata.finalizers", []string{more})
			last := w.widgets().json("a", op{"test", "/metadata/finalizers/0", more}, op{"remove", "/metadata/finalizers/0", nil}).is(http.StatusOK)
			w.want(last, "metadata.finalizers", nil)
			w.widgets().read("a").is(http.StatusNotFound)
		}},
		{"finalizer: the object goes with a PUT that drops them", func(w *world) {
			w.widgets().create("a", object{"metadata.finalizers": []string{hold}})
			left := w.widgets().delete("a").ok()
			w.widgets().put(left.with("metadata.finalizers", nil)).is(http.StatusOK)
			w.widgets().read("a").is(http.StatusNotFound)
		}},
		{"finalizer: a new one is refused while the object is being deleted", func(w *world) {
			w.widgets().create("a", object{"metadata.finalizers": []string{hold}})
			w.widgets().delete("a").ok()
			refused := w.widgets().json("a", op{"add", "/metadata/finalizers/-", more}).refused(http.StatusUnprocessableEntity, "Invalid",
				`metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{"contract.einmal.dev/more"}`)
			w.want(refused, "details.causes.0.reason", "FieldValueForbidden")
		}},
		{"finalizer: spec and status can be written while the object is being deleted", func(w *world) {
			w.widgets().create("a", object{"metadata.finalizers": []string{hold}})
			w.widgets().delete("a").ok()
			w.widgets().merge("a", object{"spec": object{"size": 7}}).ok()
			changed := w.widgets().merge("a/status", object{"status": object{"phase": "going"}}).ok()
			w.want(changed, "spec.size", 7)
			w.want(changed, "metadata.generation", 3)
		}},
	}
}

func finalizingMore() []behaviour {
	return []behaviour{
		{"finalizer: the mark cannot be taken away", func(w *world) {
			w.widgets().create("a", object{"metadata.finalizers": []string{hold}})
			left := w.widgets().delete("a").ok()
			changed := w.widgets().merge("a", object{"metadata": object{"deletionTimestamp": nil, "labels": object{"a": "b"}}}).ok()
			w.want(changed, "metadata.deletionTimestamp", left.text("metadata.deletionTimestamp"))
		}},
		{"finalizer: removing one from an object that is not being deleted keeps it", func(w *world) {
			w.widgets().create("a", object{"metadata.finalizers": []string{hold}})
			w.widgets().json("a", op{"remove", "/metadata/finalizers", nil}).ok()
			w.widgets().get("a")
		}},
	}
}

// owned are the owner references of an object that another one controls.
func owned(by object) object {
	return object{"metadata.ownerReferences": []object{referring(by, true)}}
}

// referring is an owner reference to an object.
func referring(to object, controls bool) object {
	return object{
		"apiVersion": to.text("apiVersion"), "kind": to.text("kind"), "name": to.text("metadata.name"), "uid": to.uid(),
		"controller": controls, "blockOwnerDeletion": true,
	}
}

func collecting() []behaviour {
	return []behaviour{
		{"garbage: what an owner owned goes after it", func(w *world) {
			owner := w.configMaps().create("owner")
			w.configMaps().create("child", owned(owner))
			w.configMaps().delete("owner").ok()
			w.configMaps().read("owner").is(http.StatusNotFound)
			w.eventually("the child is gone", func() bool { return w.configMaps().gone("child") })
		}},
		{"garbage: the owned of the owned go too", func(w *world) {
			owner := w.configMaps().create("owner")
			child := w.configMaps().create("child", owned(owner))
			w.configMaps().create("grandchild", owned(child))
			w.configMaps().delete("owner", object{"propagationPolicy": "Background"}).ok()
			w.eventually("the grandchild is gone", func() bool { return w.configMaps().gone("grandchild") })
			w.configMaps().read("child").is(http.StatusNotFound)
		}},
		{"garbage: orphans stay and lose their owner", func(w *world) {
			owner := w.configMaps().create("owner")
			w.configMaps().create("child", owned(owner))
			w.configMaps().delete("owner", object{"propagationPolicy": "Orphan"}).ok()
			w.eventually("the owner is gone", func() bool { return w.configMaps().gone("owner") })
			w.want(w.configMaps().get("child"), "metadata.ownerReferences", nil)
		}},
		{"garbage: in the foreground the owner goes last", func(w *world) {
			owner := w.configMaps().create("owner")
			w.configMaps().create("child", owned(owner), object{"metadata.finalizers": []string{hold}})
			left := w.configMaps().delete("owner", object{"propagationPolicy": "Foreground"}).ok()
			w.want(left, "metadata.finalizers", []string{"foregroundDeletion"})
			w.eventually("the child is being deleted", func() bool {
				return w.configMaps().get("child").text("metadata.deletionTimestamp") != ""
			})
			w.configMaps().get("owner")
			w.configMaps().merge("child", object{"metadata": object{"finalizers": nil}}).ok()
			w.eventually("the owner is gone", func() bool { return w.configMaps().gone("owner") })
		}},
	}
}

func collectingMore() []behaviour {
	return []behaviour{
		{"garbage: an object whose owner never was goes", func(w *world) {
			absent := w.configMaps().new("absent", object{"metadata.uid": "00000000-0000-0000-0000-000000000000"})
			w.configMaps().create("child", owned(absent))
			w.eventually("the child is gone", func() bool { return w.configMaps().gone("child") })
		}},
		{"garbage: an owner of that name with another uid is no owner", func(w *world) {
			owner := w.configMaps().create("owner")
			w.configMaps().create("child", owned(owner.with("metadata.uid", "00000000-0000-0000-0000-000000000000")))
			w.eventually("the child is gone", func() bool { return w.configMaps().gone("child") })
		}},
		{"garbage: one of two owners is enough to stay", func(w *world) {
			one, two := w.configMaps().create("one"), w.configMaps().create("two")
			w.configMaps().create("child", object{"metadata.ownerReferences": []object{referring(one, false), referring(two, false)}})
			w.configMaps().delete("one").ok()
			w.eventually("the reference to the absent owner is gone", func() bool {
				left, _ := w.configMaps().get("child").at("metadata.ownerReferences").([]any)
				return len(left) == 1
			})
			w.want(w.configMaps().get("child"), "metadata.ownerReferences.0.name", "two")
		}},
		{"garbage: the owner's finalizer keeps the owned", func(w *world) {
			owner := w.configMaps().create("owner", object{"metadata.finalizers": []string{hold}})
			w.configMaps().create("child", owned(owner))
			w.configMaps().delete("owner").ok()
			w.want(w.configMaps().get("child"), "metadata.deletionTimestamp", nil)
			w.configMaps().json("owner", op{"remove", "/metadata/finalizers", nil}).ok()
			w.eventually("the child is gone", func() bool { return w.configMaps().gone("child") })
		}},
		{"garbage: two controllers are refused", func(w *world) {
			one, two := w.configMaps().create("one"), w.configMaps().create("two")
			both := object{"metadata.ownerReferences": []object{referring(one, true), referring(two, true)}}
			w.configMaps().post(w.configMaps().new("child", both)).refused(
				http.StatusUnprocessableEntity, "Invalid", "Only one reference can have Controller set to true")
		}},
	}
}
