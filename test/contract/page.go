package contract

import "net/http"

// listPage lists Secrets.
func listPage(w *world, pairs ...string) object {
	w.Helper()
	return secretsOf(w).list(pairs...)
}

func secretsOf(w *world) target { return w.in("v1", "secrets", "Secret") }

// five creates Secrets to list.
func five(w *world) {
	w.Helper()
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		secretsOf(w).create(name, object{"metadata.labels": object{"color": "red"}})
	}
}

// onPage checks the names on a page.
func onPage(w *world, page object, want ...string) {
	w.Helper()
	w.want(object{"names": w.names(page)}, "names", want)
}

func readPage(w *world, pairs ...string) answer {
	w.Helper()
	return w.send(call{method: http.MethodGet, path: secretsOf(w).collection(), query: query(pairs...)})
}

func paging() []behaviour {
	return []behaviour{
		{"page: limit and continue list everything in order", func(w *world) {
			five(w)
			first := listPage(w, "limit", "2")
			onPage(w, first, "a", "b")
			w.want(first, "metadata.remainingItemCount", 3)
			second := listPage(w, "limit", "2", "continue", first.text("metadata.continue"))
			onPage(w, second, "c", "d")
			w.want(second, "metadata.remainingItemCount", 1)
			last := listPage(w, "limit", "2", "continue", second.text("metadata.continue"))
			onPage(w, last, "e")
			w.want(last, "metadata.continue", nil)
			w.want(last, "metadata.remainingItemCount", nil)
		}},
		{"page: later pages show the snapshot of the first one", func(w *world) {
			five(w)
			first := listPage(w, "limit", "2")
			secretsOf(w).create("bb")
			secretsOf(w).delete("d").ok()
			secretsOf(w).merge("e", object{"stringData": object{"k": "v"}}).ok()
			rest := listPage(w, "continue", first.text("metadata.continue"))
			onPage(w, rest, "c", "d", "e")
			w.want(rest, "items.2.data", nil)
			w.want(rest, "metadata.resourceVersion", first.version())
		}},
		{"page: a list that fits has no continue token", func(w *world) {
			five(w)
			page := listPage(w, "limit", "5")
			onPage(w, page, "a", "b", "c", "d", "e")
			w.want(page, "metadata.continue", nil)
		}},
		{"page: with a selector the remaining objects are not counted", func(w *world) {
			five(w)
			page := listPage(w, "limit", "1", "labelSelector", "color=red")
			onPage(w, page, "a")
			w.want(page, "metadata.remainingItemCount", nil)
			onPage(w, listPage(w, "limit", "1", "labelSelector", "color=red", "continue", page.text("metadata.continue")), "b")
		}},
	}
}

func pagingMore() []behaviour {
	return []behaviour{
		{"page: resourceVersion 0 has no pages", func(w *world) {
			five(w)
			w.want(listPage(w, "limit", "2", "resourceVersion", "0"), "metadata.continue", nil)
		}},
		{"page: a bogus continue token is 400", func(w *world) {
			readPage(w, "limit", "2", "continue", "bogus").refused(http.StatusBadRequest, "BadRequest", "invalid continue token: continue key is not valid")
		}},
		{"page: a resourceVersion with a continue token is 400", func(w *world) {
			five(w)
			first := listPage(w, "limit", "2")
			readPage(w, "continue", first.text("metadata.continue"), "resourceVersion", first.version()).refused(
				http.StatusBadRequest, "BadRequest", "specifying resource version is not allowed when using continue")
		}},
		{"page: an older resourceVersion is listed as it was", func(w *world) {
			five(w)
			version := listPage(w).version()
			secretsOf(w).delete("a").ok()
			onPage(w, listPage(w, "resourceVersion", version, "resourceVersionMatch", "Exact"), "a", "b", "c", "d", "e")
			onPage(w, listPage(w, "resourceVersion", version, "limit", "2"), "a", "b")
			onPage(w, listPage(w, "resourceVersion", version), "b", "c", "d", "e")
		}},
	}
}
