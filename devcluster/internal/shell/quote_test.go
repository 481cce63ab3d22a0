package shell

import (
	"os/exec"
	"testing"
)

// TestQuote asks a shell what it makes of the quoted word.
func TestQuote(t *testing.T) {
	for _, word := range []string{"/a/b.c", "/with space", "it's", "$HOME", "", "a\nb", "ü"} {
		out, err := exec.CommandContext(t.Context(), "sh", "-c", "printf %s "+Quote(word)).Output()
		if err != nil || string(out) != word {
			t.Errorf("%q is %s for a shell: %q, %v", word, Quote(word), out, err)
		}
	}
	if got := Quote("/a/.b/kubeconfig"); got != "/a/.b/kubeconfig" {
		t.Errorf("a plain path becomes %s", got)
	}
}
