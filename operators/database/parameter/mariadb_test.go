package parameter

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
)

func TestParametersThatMariaDBAcceptsAreAccepted(t *testing.T) {
	memory := resource.MustParse("1Gi")
	for _, good := range []map[string]string{
		{
			"innodb_buffer_pool_size": "512M", "max_connections": "200", "long_query_time": "0.5", "join_buffer_size": "256K", "max_allowed_packet": "67108864",
			"innodb_print_all_deadlocks": "ON", "query_cache_type": "DEMAND", "transaction_isolation": "READ-COMMITTED", "tmp_table_size": "0",
			"sql_mode": "STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION", "default_time_zone": "+05:30", "thread_cache_size": "200",
			"innodb_io_capacity": "2000", "innodb_io_capacity_max": "2000", "innodb_max_dirty_pages_pct_lwm": "80",
		},
		{"innodb_buffer_pool_size": "1023M", "innodb_io_capacity": "100000", "default_time_zone": "SYSTEM", "sql_mode": "TIME_ROUND_FRACTIONAL"},
		{"character_set_server": "latin1"},
		{"collation_server": "utf8mb4_unicode_ci"},
		{"character_set_server": "latin1", "collation_server": "latin1_general_cs"},
		{"default_time_zone": "-12:59"},
		{"default_time_zone": "+13:00"},
	} {
		if wrong := MariaDB().Check(good, Room{Memory: &memory}); wrong != nil {
			t.Errorf("refused are %q", wrong)
		}
	}
}

func TestWrongParametersOfMariaDBAreNamedWithTheirRemedy(t *testing.T) {
	memory, volume := resource.MustParse("1Gi"), resource.MustParse("2Gi")
	const (
		packet = "must be a whole number from 1048576 to 1073741824 in bytes, or with one of the units K, M, G, T, and a multiple of 1024"
		zone   = "must be one of SYSTEM, or an offset from -12:59 to +13:00"
		half   = "must be less than the memory of the server, 1Gi"
	)
	modes := "must be one or more of " + strings.Join(modes(), ", ") + ", separated by commas"
	for _, test := range []struct{ name, value, want string }{
		{"innodb_log_file_size", "2G", `must be less than the volume, 2Gi, not "2G"; a tenth of it is usual`},
		{"max_connections", "many", `must be a whole number from 10 to 10000, not "many"`},
		{"max_connections", "9", `must be a whole number from 10 to 10000, not "9"`},
		{"max_connections", "1K", `must be a whole number from 10 to 10000, not "1K"`},
		{"max_allowed_packet", "64MB", packet + `, not "64MB"`},
		{"max_allowed_packet", "64m", packet + `, not "64m"`},
		{"max_allowed_packet", "64 M", packet + `, not "64 M"`},
		{"max_allowed_packet", "1.5M", packet + `, not "1.5M"`},
		{"max_allowed_packet", "-64M", packet + `, not "-64M"`},
		{"max_allowed_packet", "1048577", packet + `, not "1048577"`},
		{"max_allowed_packet", "64M\nskip_grant_tables", packet + `, not "64M\nskip_grant_tables"`},
		{"max_allowed_packet", "", packet + `, not ""`},
		{"sort_buffer_size", "1", `must be a whole number from 1024 to 1099511627776 in bytes, or with one of the units K, M, G, T, not "1"`},
		{"long_query_time", "1s", `must be a number from 0 to 31536000, not "1s"`},
		{"slow_query_log", "on", `must be one of ON, OFF, not "on"`},
		{"slow_query_log", "1", `must be one of ON, OFF, not "1"`},
		{"sql_mode", "ANSI_QUOTES", modes + `, not "ANSI_QUOTES"`},
		{"sql_mode", "STRICT_ALL_TABLES, NO_ZERO_DATE", modes + `, not "STRICT_ALL_TABLES, NO_ZERO_DATE"`},
		{"sql_mode", "", modes + `, not ""`},
		{"default_time_zone", "Europe/Berlin", zone + `, not "Europe/Berlin"`},
		{"default_time_zone", "+13:01", zone + `, not "+13:01"`},
		{"default_time_zone", "+02:00\n", zone + `, not "+02:00\n"`},
		{"innodb_buffer_pool_size", "1G", half + `, not "1G"; half of it is usual`},
		{"innodb_buffer_pool_size", "1073741824", half + `, not "1073741824"; half of it is usual`},
		{"collation_server", "latin1_bin", `must be one of character_set_server utf8mb4, not "latin1_bin"`},
		{"thread_cache_size", "152", `must be at most max_connections, 151, not "152"`},
		{"innodb_max_dirty_pages_pct_lwm", "90.5", `must be at most innodb_max_dirty_pages_pct, 90, not "90.5"`},
	} {
		if diff := cmp.Diff([]string{test.name + ": " + test.want}, MariaDB().Check(map[string]string{test.name: test.value}, Room{&memory, &volume})); diff != "" {
			t.Errorf("%s=%q (-want +got):\n%s", test.name, test.value, diff)
		}
	}
}

func TestParametersOfMariaDBThatDoNotAgreeAreNamed(t *testing.T) {
	got := MariaDB().Check(map[string]string{
		"character_set_server": "latin1", "collation_server": "utf8mb4_bin", "innodb_io_capacity": "1000", "innodb_io_capacity_max": "900",
		"max_connections": "20", "thread_cache_size": "21",
	}, Room{})
	want := []string{
		`collation_server: must be one of character_set_server latin1, not "utf8mb4_bin"`,
		`innodb_io_capacity: must be at most innodb_io_capacity_max, 900, not "1000"`,
		`thread_cache_size: must be at most max_connections, 20, not "21"`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what is wrong (-want +got):\n%s", diff)
	}
}

// A server with one of these would listen elsewhere, lose its files or what it has written, or let others in.
func TestParametersThatTheOperatorDependsOnCannotBeSet(t *testing.T) {
	for _, name := range []string{
		"bind_address", "port", "socket", "skip_networking", "datadir", "tmpdir", "secure_file_priv", "skip_grant_tables", "init_connect", "init_file", "log_error",
		"slow_query_log_file", "general_log", "log_bin", "plugin_load", "plugin_load_add", "innodb_flush_log_at_trx_commit", "innodb_doublewrite", "sync_binlog",
		"lower_case_table_names", "default_storage_engine", "optimizer_switch", "time_zone", "shared_buffers", "max_connections ", "MAX_CONNECTIONS",
	} {
		want := []string{name + ": cannot be set; docs/operators/database.md lists the parameters that can be"}
		if diff := cmp.Diff(want, MariaDB().Check(map[string]string{name: "1"}, Room{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestTheOptionFileHasTheParametersOfMariaDB(t *testing.T) {
	got := MariaDB().Lines(map[string]string{"max_connections": "200", "innodb_buffer_pool_size": "512M"})
	if diff := cmp.Diff("innodb_buffer_pool_size = 512M\nmax_connections = 200\n", got); diff != "" {
		t.Errorf("the lines (-want +got):\n%s", diff)
	}
}
