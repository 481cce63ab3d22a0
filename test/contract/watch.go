package contract

import (
	"net/http"
	"time"
)

func watching() []behaviour {
	return []behaviour{
		{"watch: tells of what happens after a resourceVersion, in order", func(w *world) {
			start := w.widgets().list().version()
			w.widgets().create("a")
			w.widgets().create("b")
			w.widgets().merge("a", object{"spec": object{"size": 4}}).ok()
			w.widgets().delete("b").ok()
			s := w.widgets().watch("resourceVersion", start)
			s.want("ADDED", "a")
			s.want("ADDED", "b")
			w.want(s.want("MODIFIED", "a"), "spec.size", 4)
			s.want("DELETED", "b")
			w.widgets().create("c")
			s.want("ADDED", "c")
		}},
		{"watch: from the version of an object does not tell of that object", func(w *world) {
			made := w.widgets().create("a")
			s := w.widgets().watch("resourceVersion", made.version())
			w.widgets().create("b")
			s.want("ADDED", "b")
		}},
		{"watch: without a resourceVersion begins with what there is", func(w *world) {
			w.widgets().create("a")
			s := w.widgets().watch()
			s.want("ADDED", "a")
			w.widgets().create("b")
			s.want("ADDED", "b")
		}},
		{"watch: resourceVersion 0 begins with what there is", func(w *world) {
			w.widgets().create("a")
			w.widgets().watch("resourceVersion", "0").want("ADDED", "a")
		}},
		{"watch: a deletion carries the last state and a newer resourceVersion", func(w *world) {
			made := w.widgets().create("a", object{"spec.size": 3})
			s := w.widgets().watch("resourceVersion", made.version())
			w.widgets().delete("a").ok()
			last := s.want("DELETED", "a")
			w.want(last, "spec.size", 3)
			if w.number(last.version()) <= w.number(made.version()) {
				w.Errorf("the deletion has the version %s, the object had %s", last.version(), made.version())
			}
		}},
		{"watch: what is written with the same content is not told", func(w *world) {
			made := w.widgets().create("a", object{"spec.size": 3})
			s := w.widgets().watch("resourceVersion", made.version())
			w.widgets().merge("a", object{"spec": object{"size": 3}}).ok()
			w.widgets().create("b")
			s.want("ADDED", "b")
		}},
		{"watch: a deletion with finalizers is a modification first", func(w *world) {
			made := w.widgets().create("a", object{"metadata.finalizers": []string{hold}})
			s := w.widgets().watch("resourceVersion", made.version())
			w.widgets().delete("a").ok()
			if marked := s.want("MODIFIED", "a"); marked.text("metadata.deletionTimestamp") == "" {
				w.Errorf("the metadata is %v", marked.at("metadata"))
			}
			w.widgets().json("a", op{"remove", "/metadata/finalizers", nil}).ok()
			w.want(s.want("DELETED", "a"), "metadata.finalizers", []string{hold})
		}},
	}
}

func watchingSome() []behaviour {
	return []behaviour{
		{"watch: of one name", func(w *world) {
			s := w.widgets().watch("fieldSelector", "metadata.name=b")
			w.widgets().create("a")
			w.widgets().create("b")
			s.want("ADDED", "b")
		}},
		{"watch: the path of one object is read, not watched", func(w *world) {
			w.widgets().create("a")
			w.widgets().create("b")
			c := call{method: http.MethodGet, path: w.widgets().path("b"), query: query("watch", "true", "timeoutSeconds", "1")}
			w.want(w.send(c).ok(), "metadata.name", "b")
		}},
		{"watch: what begins to match is added, what ceases to match is deleted", func(w *world) {
			made := w.widgets().create("a", object{"metadata.labels": object{"on": "no"}})
			s := w.widgets().watch("resourceVersion", made.version(), "labelSelector", "on=yes")
			w.widgets().merge("a", object{"metadata": object{"labels": object{"on": "yes"}}}).ok()
			s.want("ADDED", "a")
			w.widgets().merge("a", object{"spec": object{"size": 6}}).ok()
			s.want("MODIFIED", "a")
			changed := w.widgets().merge("a", object{"metadata": object{"labels": object{"on": "no"}}}).ok()
			last := s.want("DELETED", "a")
			w.want(last, "metadata.labels.on", "yes")
			w.want(last, "metadata.resourceVersion", changed.version())
		}},
	}
}

func watchingMore() []behaviour {
	return []behaviour{
		{"watch: a bookmark comes before the end and counts what does not match", func(w *world) {
			made := w.widgets().create("a")
			w.widgets().create("b")
			var told event
			var err error
			var changed object
			// A server that looks each second may be late, and then the watch has ended; another moment may suit it better.
			for pause := range 6 {
				<-time.After(time.Duration(pause) * 170 * time.Millisecond)
				s := w.widgets().watch("resourceVersion", made.version(), "fieldSelector", "metadata.name=a", "timeoutSeconds", "3", "allowWatchBookmarks", "true")
				// A watch that begins at the newest version gets no bookmark until something happens.
				changed = w.widgets().merge("b", object{"spec": object{"size": pause + 10}}).ok()
				if told, err = s.next(); err == nil {
					break
				}
			}
			if err != nil || told.Type != "BOOKMARK" {
				w.Fatalf("the watch tells %v, %v", told, err)
			}
			w.want(told.Object, "kind", "Widget")
			if w.number(told.Object.version()) < w.number(changed.version()) {
				w.Errorf("the bookmark is at %s, the last change at %s", told.Object.version(), changed.version())
			}
		}},
		{"watch: ends after timeoutSeconds", func(w *world) {
			start := time.Now()
			w.widgets().watch("timeoutSeconds", "1").ends()
			if took := time.Since(start); took < time.Second/2 || took > patience/2 {
				w.Errorf("it took %s", took)
			}
		}},
		{"watch: a version that is no number is 500", func(w *world) {
			c := call{method: http.MethodGet, path: w.widgets().collection(), query: query("watch", "true", "resourceVersion", "nonsense")}
			w.want(w.send(c).is(http.StatusInternalServerError), "message",
				`resourceVersion: Invalid value: "nonsense": strconv.ParseUint: parsing "nonsense": invalid syntax`)
		}},
		{"watch: a built-in kind", func(w *world) {
			s := w.configMaps().watch("fieldSelector", "metadata.name=a")
			w.configMaps().create("a", object{"data": object{"a": "1"}})
			w.want(s.want("ADDED", "a"), "kind", "ConfigMap")
			w.configMaps().delete("a").ok()
			s.want("DELETED", "a")
		}},
		{"watch: metadata only", func(w *world) {
			w.widgets().create("a", object{"spec.size": 3})
			metadata := w.widgets()
			metadata.accept = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
			told := metadata.watch().want("ADDED", "a")
			w.want(told, "kind", "PartialObjectMetadata")
			w.want(told, "spec", nil)
		}},
	}
}

func streaming() []behaviour {
	initial := []string{"sendInitialEvents", "true", "resourceVersionMatch", "NotOlderThan", "allowWatchBookmarks", "true"}
	return []behaviour{
		{"stream: the initial list ends with an annotated bookmark", func(w *world) {
			w.widgets().create("a")
			w.widgets().create("b")
			s := w.widgets().watch(initial...)
			s.want("ADDED", "a")
			s.want("ADDED", "b")
			told, err := s.next()
			if err != nil || told.Type != "BOOKMARK" {
				w.Fatalf("the watch tells %v, %v", told, err)
			}
			annotations, _ := told.Object.at("metadata.annotations").(map[string]any)
			if annotations["k8s.io/initial-events-end"] != "true" {
				w.Errorf("the annotations of the bookmark are %v", annotations)
			}
			w.widgets().create("c")
			s.want("ADDED", "c")
		}},
		{"stream: an empty initial list is a bookmark", func(w *world) {
			told, err := w.widgets().watch(initial...).next()
			if err != nil || told.Type != "BOOKMARK" || told.Object.version() == "" {
				w.Fatalf("the watch tells %v, %v", told, err)
			}
		}},
		{"stream: sendInitialEvents without resourceVersionMatch is 422", func(w *world) {
			c := call{method: http.MethodGet, path: w.widgets().collection(), query: query("watch", "true", "sendInitialEvents", "true")}
			w.send(c).refused(http.StatusUnprocessableEntity, "Invalid",
				"resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan")
		}},
		{"stream: sendInitialEvents for a list is 422", func(w *world) {
			c := call{method: http.MethodGet, path: w.widgets().collection(), query: query("sendInitialEvents", "true")}
			w.send(c).refused(http.StatusUnprocessableEntity, "Invalid", "sendInitialEvents is forbidden for list")
		}},
	}
}
