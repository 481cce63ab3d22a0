package parameter

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
)

func TestParametersThatServersAcceptAreAccepted(t *testing.T) {
	memory := resource.MustParse("1Gi")
	good := map[string]string{
		"work_mem": "64MB", "maintenance_work_mem": "1 GB", "max_connections": "200", "random_page_cost": "1.1", "checkpoint_timeout": "15min",
		"statement_timeout": "0", "log_min_duration_statement": "-1", "autovacuum": "off", "wal_compression": "pglz", "effective_cache_size": "131072",
		"track_activity_query_size": "4kB", "autovacuum_vacuum_cost_delay": "0.5", "shared_buffers": "256MB", "default_transaction_isolation": "repeatable read",
	}
	if wrong := PostgreSQL().Check(good, Room{Memory: &memory}); wrong != nil {
		t.Errorf("refused are %q", wrong)
	}
}

func TestWrongParametersAreNamedWithTheirRemedy(t *testing.T) {
	memory, volume := resource.MustParse("1Gi"), resource.MustParse("2Gi")
	for _, test := range []struct{ name, value, want string }{
		{"max_connections", "many", `must be a whole number from 10 to 10000, not "many"`},
		{"max_connections", "20000", `must be a whole number from 10 to 10000, not "20000"`},
		{"max_connections", "100.5", `must be a whole number from 10 to 10000, not "100.5"`},
		{"max_connections", "100MB", `must be a whole number from 10 to 10000, not "100MB"`},
		{"work_mem", "64Mi", `must be a whole number from 64 to 2147483647 in kB, or with one of the units B, kB, MB, GB, TB, not "64Mi"`},
		{"work_mem", "1kB", `must be a whole number from 64 to 2147483647 in kB, or with one of the units B, kB, MB, GB, TB, not "1kB"`},
		{"work_mem", "", `must be a whole number from 64 to 2147483647 in kB, or with one of the units B, kB, MB, GB, TB, not ""`},
		{"work_mem", "64MB'\nssl = 'on", `must be a whole number from 64 to 2147483647 in kB, or with one of the units B, kB, MB, GB, TB, not "64MB'\nssl = 'on"`},
		{"work_mem", "NaN", `must be a whole number from 64 to 2147483647 in kB, or with one of the units B, kB, MB, GB, TB, not "NaN"`},
		{"random_page_cost", "1e400", `must be a number from 0 to 10000000000, not "1e400"`},
		{"autovacuum", "maybe", `must be one of on, off, not "maybe"`},
		{"max_connections", "0100", `must not begin with 0, because a server can take it for an octal number; it must be a whole number from 10 to 10000, not "0100"`},
		{"shared_buffers", "1GB", `must be less than the memory of the server, 1Gi, not "1GB"; a quarter of it is usual`},
		{"random_page_cost", "01.5", `must not begin with 0, because a server can take it for an octal number; it must be a number from 0 to 10000000000, not "01.5"`},
		{"max_wal_size", "2GB", `must be less than the volume, 2Gi, not "2GB"; a tenth of it is the default`},
		{"min_wal_size", "64TB", `must be less than the volume, 2Gi, not "64TB"; a twentieth of it is the default`},
		{"shared_buffers", "131072", `must be less than the memory of the server, 1Gi, not "131072"; a quarter of it is usual`},
	} {
		if diff := cmp.Diff([]string{test.name + ": " + test.want}, PostgreSQL().Check(map[string]string{test.name: test.value}, Room{&memory, &volume})); diff != "" {
			t.Errorf("%s=%q (-want +got):\n%s", test.name, test.value, diff)
		}
	}
	wrong := PostgreSQL().Check(map[string]string{"listen_addresses": "*", "fsync": "off"}, Room{})
	if len(wrong) != 2 || wrong[0] != "fsync: cannot be set; docs/operators/database.md lists the parameters that can be" {
		t.Errorf("refused are %q", wrong)
	}
}

func TestTheManualListsTheParameters(t *testing.T) {
	page, err := os.ReadFile("../../../docs/operators/database.md")
	if err != nil {
		t.Fatal(err)
	}
	for name, engine := range map[string]Engine{"PostgreSQL": PostgreSQL(), "MariaDB": MariaDB()} {
		_, listed, _ := strings.Cut(string(page), "\nThese can be set with "+name+":\n")
		listed, _, _ = strings.Cut(strings.TrimSpace(listed), "\n\n")
		got := strings.Fields(strings.NewReplacer("`", "", ",", "", ".", "").Replace(listed))
		if diff := cmp.Diff(slices.Sorted(maps.Keys(engine.list)), got); diff != "" {
			t.Errorf("the parameters of %s in the manual (-want +got):\n%s", name, diff)
		}
	}
}

func TestTheConfigurationQuotesValues(t *testing.T) {
	got := PostgreSQL().Lines(map[string]string{"work_mem": "64MB", "autovacuum": "it's"})
	if diff := cmp.Diff("autovacuum = 'it''s'\nwork_mem = '64MB'\n", got); diff != "" {
		t.Errorf("the configuration (-want +got):\n%s", diff)
	}
}

// Servers accept whatever Check accepts: each parameter exists, and its range is within that of the server.
func TestServersHaveTheParameters(t *testing.T) {
	servers, err := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
	if err != nil || len(servers) == 0 {
		t.Fatalf("no PostgreSQL is installed: tools/servers.sh installs it: %v", err)
	}
	for _, server := range servers {
		described, err := exec.CommandContext(t.Context(), server, "--describe-config").Output()
		if err != nil {
			t.Fatalf("%s: %v", server, err)
		}
		found := map[string][]string{}
		for line := range strings.Lines(string(described)) {
			fields := strings.Split(line, "\t")
			found[fields[0]] = fields
		}
		for name, known := range PostgreSQL().list {
			checkDescription(t, name, known, found[name])
		}
	}
}

// checkDescription compares a parameter with a line of postgres --describe-config: name, context, group, type, default, least and most.
func checkDescription(t *testing.T, name string, known kind, fields []string) {
	t.Helper()
	if len(fields) < 7 || fields[1] == "internal" {
		t.Errorf("%s: the server has %q", name, fields)
		return
	}
	kinds := map[bool][]string{true: {"INTEGER", "REAL"}, false: {"BOOLEAN", "ENUM"}}[known.number]
	if !slices.Contains(kinds, fields[3]) || known.whole && fields[3] == "REAL" {
		t.Errorf("%s is %s", name, fields[3])
	}
	if !known.number {
		return
	}
	least, err := strconv.ParseFloat(fields[5], 64)
	if err != nil || known.least < least {
		t.Errorf("%s begins at %s, not at %v", name, fields[5], known.least)
	}
	most, err := strconv.ParseFloat(fields[6], 64)
	if err != nil || known.most > most {
		t.Errorf("%s ends at %s, not at %v", name, fields[6], known.most)
	}
}
