package shell

import (
	"os/exec"
	"testing"
)

// TestQuote checks that a shell reads the original from the quoted word.
func TestQuote(t *testing.T) {
	for _, word := range []string{"/a/b.c", "/with space", "it's", "$HOME", "", "a\nb", "ü"} {
		out, err := exec.CommandContext(t.Context(), "sh", "-c", "printf %s "+Quote(word)).Output()
		if err != nil || string(out) != word {
			t.Errorf("a shell reads %s as %q, want %q (error %v)", Quote(word), out, word, err)
		}
	}
	if got := Quote("/a/.b/kubeconfig"); got != "/a/.b/kubeconfig" {
		t.Errorf("a plain path is quoted as %s", got)
	}
}
