package repo_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The page docs/concepts/footguns.md names existing tests and scripts, at least one in each row.
func TestThePageOfFootgunsNamesTestsThatAreThere(t *testing.T) {
	const page = "docs/concepts/footguns.md"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	link := regexp.MustCompile(`\[([^]]+)\]\(([^)]+)\)`)
	rows := 0
	for line := range strings.SplitSeq(string(text), "\n") {
		if !strings.HasPrefix(line, "| G") {
			continue
		}
		rows++
		named := link.FindAllStringSubmatch(line, -1)
		if len(named) == 0 {
			t.Errorf("nothing shows %.60s", line)
		}
		for _, found := range named {
			shown, err := os.ReadFile(filepath.Join(filepath.Dir(page), found[2]))
			if err != nil || strings.HasPrefix(found[1], "Test") && !strings.Contains(string(shown), "func "+found[1]+"(") {
				t.Errorf("%s does not show %.60s: %v", found[1], line, err)
			}
		}
	}
	if rows < 30 {
		t.Errorf("%d rows are found: the page has another form", rows)
	}
}
