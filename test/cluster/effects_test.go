package cluster_test

import (
	"os"
	"strings"
	"testing"

	"github.com/einmal-operators/einmal/internal/testkit/cluster"
	"github.com/einmal-operators/einmal/test/fixture"
)

// killedAfterACall lets a process die that has opened an account, before it could record that. The next one calls again with the token
// that is stored, and there is one account.
func (w *world) killedAfterACall(t *testing.T, use fixture.Carrier, run launch) {
	const name = "keyed"
	j, bank := &fixture.Journal{}, t.TempDir()
	w.watermark(t, use, "")
	w.spend(t, use, "a finalizer and an intent", 2, func() {
		first := run(t, j, "BANK="+bank, "HANG=yes")
		first.serves(t)
		w.create(t, use, name)
		cluster.Until(t, "the account is opened", func() bool { return len(j.Of(name)) > 1 })
		first.kill(t)
	})
	found, err := w.get(t.Context(), use, name)
	if err != nil {
		t.Fatal(err)
	}
	if text := use.Record(found); !strings.Contains(text, `"account":{"intent":{"class":"keyed"`) || strings.Contains(text, "result") {
		t.Fatalf("after the kill there is the record %s", text)
	}
	var second *process
	w.spend(t, use, "a result after a kill", use.Writes(1, 2), func() {
		second = run(t, j, "BANK="+bank)
		w.called(t, use, j, name, "make (create, attempt 1)", "call (create, attempt 1)",
			"make (create, attempt 1) maybe repeated", "call (create, attempt 1) maybe repeated")
	})
	w.hasOneAccount(t, use, name, bank)
	w.delete(t, use, name)
	second.stop(t)
}

func (w *world) hasOneAccount(t *testing.T, use fixture.Carrier, name, bank string) {
	t.Helper()
	open, err := os.ReadDir(bank)
	if err != nil || len(open) != 1 {
		t.Errorf("there are %d accounts, want one: %v", len(open), err)
	}
	if phase := w.Kubectl(t, "", "get", use.Resource, name, "-o", "jsonpath={.status.phase}"); phase != "account 1" {
		t.Errorf("the phase is %q", phase)
	}
}
