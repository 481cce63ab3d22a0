package parameter

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// MariaDB returns the parameters of MariaDB 10.11, by their names in an option file. Names are those of its manual, and ranges are at most those of
// information_schema.system_variables: https://mariadb.com/kb/en/server-system-variables/, https://mariadb.com/kb/en/innodb-system-variables/.
//
// A dedicated server can use up to 80 percent of its memory for the buffer pool: https://mariadb.com/kb/en/innodb-buffer-pool/. Containers are smaller than
// such servers, and need a larger share of the memory for connections.
func MariaDB() Engine {
	list := innoDB()
	maps.Copy(list, timeouts())
	maps.Copy(list, memories())
	maps.Copy(list, statements())
	return Engine{
		list: list, together: agree,
		bounds: []bound{
			{"innodb_buffer_pool_size", memory, "the memory of the server", "half of it is usual"},
			{"innodb_log_file_size", volume, "the volume", "a tenth of it is usual"},
		},
		line: func(name, value string) string { return name + " = " + value + "\n" },
	}
}

const (
	characterSet, collation = "character_set_server", "collation_server"
	// mostSize is more than any server has, and exact in floating point.
	mostSize = 1 << 40
	// mostCount is the largest number of 32 bits.
	mostCount = 1<<32 - 1
	year      = 365 * 24 * 60 * 60
)

// innoDB, timeouts, memories and statements return the parameters that can be set. They have none that decides where the server listens, where its files
// are, who may log in or how it reads the statements of the operator, because the operator depends on these, none that loads a library, and none that gives
// up data for speed, such as innodb_flush_log_at_trx_commit. lower_case_table_names is missing too: a server cannot find its tables after a change.
//
// The server reserves innodb_log_file_size on the volume when it starts. If there is less space, it does not start until the parameter is lowered.
//
// The server rounds many sizes to a multiple of some unit. Only multiples are right, so that it uses the values that it gets.
func innoDB() map[string]kind {
	return map[string]kind{
		"innodb_adaptive_flushing":             switches(),
		"innodb_adaptive_hash_index":           switches(),
		"innodb_autoinc_lock_mode":             whole(0, 2),
		"innodb_buffer_pool_dump_pct":          whole(1, 100),
		"innodb_buffer_pool_size":              size(8<<20, mostSize, 1<<20),
		"innodb_deadlock_detect":               switches(),
		"innodb_file_per_table":                switches(),
		"innodb_fill_factor":                   whole(10, 100),
		"innodb_flush_neighbors":               whole(0, 2),
		"innodb_ft_max_token_size":             whole(10, 84),
		"innodb_ft_min_token_size":             whole(1, 16),
		"innodb_io_capacity":                   whole(100, 1_000_000),
		"innodb_io_capacity_max":               whole(200, 1_000_000),
		"innodb_lock_wait_timeout":             whole(0, 100_000_000),
		"innodb_log_buffer_size":               size(2<<20, 1<<30, 4<<10),
		"innodb_log_file_size":                 size(4<<20, 16<<30, 4<<10),
		"innodb_max_dirty_pages_pct":           fraction(0, 99.999),
		"innodb_max_dirty_pages_pct_lwm":       fraction(0, 99.999),
		"innodb_max_purge_lag":                 whole(0, mostCount),
		"innodb_max_purge_lag_delay":           whole(0, 10_000_000),
		"innodb_old_blocks_pct":                whole(5, 95),
		"innodb_old_blocks_time":               whole(0, mostCount),
		"innodb_online_alter_log_max_size":     size(64<<10, mostSize, 1),
		"innodb_print_all_deadlocks":           switches(),
		"innodb_purge_threads":                 whole(1, 32),
		"innodb_read_io_threads":               whole(1, 64),
		"innodb_rollback_on_timeout":           switches(),
		"innodb_sort_buffer_size":              size(64<<10, 64<<20, 1),
		"innodb_stats_auto_recalc":             switches(),
		"innodb_stats_persistent":              switches(),
		"innodb_stats_persistent_sample_pages": whole(1, mostCount),
		"innodb_strict_mode":                   switches(),
		"innodb_undo_log_truncate":             switches(),
		"innodb_write_io_threads":              whole(2, 64),
	}
}

// timeouts are in seconds. Those of connections are at least 10, because a backup has pauses.
func timeouts() map[string]kind {
	return map[string]kind{
		"idle_readonly_transaction_timeout": whole(0, year),
		"idle_transaction_timeout":          whole(0, year),
		"idle_write_transaction_timeout":    whole(0, year),
		"interactive_timeout":               whole(10, year),
		"lock_wait_timeout":                 whole(0, year),
		"long_query_time":                   fraction(0, year),
		"max_statement_time":                fraction(0, year),
		"net_read_timeout":                  whole(10, year),
		"net_write_timeout":                 whole(10, year),
		"wait_timeout":                      whole(10, year),
	}
}

// memories are sizes and counts of what the server keeps in memory. A max_allowed_packet of less than 1M would keep rows from a backup. The server lowers
// max_connections and table_open_cache if it cannot open as many files.
func memories() map[string]kind {
	return map[string]kind{
		"aria_pagecache_buffer_size": size(128<<10, mostSize, 1),
		"join_buffer_size":           size(128, mostSize, 128),
		"key_buffer_size":            size(4<<10, mostSize, 4<<10),
		"max_allowed_packet":         size(1<<20, 1<<30, 1<<10),
		"max_connections":            whole(10, 10_000),
		"max_heap_table_size":        size(16<<10, mostSize, 1<<10),
		"max_prepared_stmt_count":    whole(0, mostCount),
		"max_user_connections":       whole(0, 10_000),
		"performance_schema":         switches(),
		"query_cache_limit":          size(0, mostCount, 1),
		"query_cache_size":           size(1<<20, mostSize, 1<<10),
		"query_cache_type":           {words: []string{"OFF", "ON", "DEMAND"}},
		"read_buffer_size":           size(8<<10, 1<<30, 4<<10),
		"read_rnd_buffer_size":       size(1, 1<<30, 1),
		"sort_buffer_size":           size(1<<10, mostSize, 1),
		"table_definition_cache":     whole(400, 2<<20),
		"table_open_cache":           whole(10, 1<<20),
		"thread_cache_size":          whole(0, 16<<10),
		"tmp_disk_table_size":        size(1<<10, mostSize, 1),
		"tmp_table_size":             size(0, mostSize, 16<<10),
	}
}

// statements decide how statements are executed and logged. The configuration of the operator has to set slow_query_log_file, because its default is a file
// on the volume.
func statements() map[string]kind {
	return map[string]kind{
		"auto_increment_increment":      whole(1, 65535),
		"auto_increment_offset":         whole(1, 65535),
		characterSet:                    {words: []string{"ascii", "latin1", "utf8mb3", defaultCharacterSet}},
		collation:                       {words: collations()},
		"default_time_zone":             {words: []string{"SYSTEM"}, form: "an offset from -12:59 to +13:00", fits: isOffset},
		"default_week_format":           whole(0, 7),
		"eq_range_index_dive_limit":     whole(0, mostCount),
		"event_scheduler":               switches(),
		"group_concat_max_len":          size(4, 1<<30, 1),
		"join_cache_level":              whole(0, 8),
		"log_queries_not_using_indexes": switches(),
		"max_recursive_iterations":      whole(0, mostCount),
		"max_sp_recursion_depth":        whole(0, 255),
		"min_examined_row_limit":        whole(0, mostCount),
		"optimizer_search_depth":        whole(0, 62),
		"slow_query_log":                switches(),
		"sql_mode":                      {form: "one or more of " + strings.Join(modes(), ", ") + ", separated by commas", fits: areModes},
		"transaction_isolation":         {words: []string{"READ-UNCOMMITTED", "READ-COMMITTED", "REPEATABLE-READ", "SERIALIZABLE"}},
		"userstat":                      switches(),
	}
}

// collations are those of the character sets that can be set.
func collations() []string {
	return []string{
		"ascii_bin", "ascii_general_ci", "latin1_bin", "latin1_general_ci", "latin1_general_cs", "latin1_german1_ci", "latin1_german2_ci",
		"latin1_spanish_ci", "latin1_swedish_ci", "utf8mb3_bin", "utf8mb3_general_ci", "utf8mb3_unicode_ci", "utf8mb4_bin", "utf8mb4_general_ci",
		"utf8mb4_german2_ci", "utf8mb4_nopad_bin", "utf8mb4_uca1400_ai_ci", "utf8mb4_uca1400_as_cs", "utf8mb4_unicode_520_ci", "utf8mb4_unicode_ci",
	}
}

// defaultCharacterSet is what the configuration of the operator sets.
const defaultCharacterSet = "utf8mb4"

// agree expects that parameters agree with each other. The server does not start with the collation of another character set, and lowers a parameter that
// must be at most another one.
func agree(parameters map[string]string) []string {
	var wrong []string
	for _, pair := range [][3]string{ // A parameter, its limit, and the default of that. Without a default the server chooses a limit that is high enough.
		{"innodb_io_capacity", "innodb_io_capacity_max", ""},
		{"innodb_max_dirty_pages_pct_lwm", "innodb_max_dirty_pages_pct", "90"},
		{"thread_cache_size", "max_connections", "151"},
	} {
		value, set := parameters[pair[0]]
		most := cmp.Or(parameters[pair[1]], pair[2])
		if set && most != "" && number(value) > number(most) {
			wrong = append(wrong, fmt.Sprintf("%s: must be at most %s, %s, not %q", pair[0], pair[1], most, value))
		}
	}
	chosen, set := parameters[collation]
	if characters := cmp.Or(parameters[characterSet], defaultCharacterSet); set && !strings.HasPrefix(chosen, characters+"_") {
		wrong = append(wrong, fmt.Sprintf("%s: must be one of %s %s, not %q", collation, characterSet, characters, chosen))
	}
	slices.Sort(wrong)
	return wrong
}

// number returns a valid number without a unit.
func number(value string) float64 {
	amount, _ := kind{}.amount(value)
	return amount
}

// modes returns the modes that do not change how the server reads a statement: scripts would fail with them. Sessions can set the other modes.
func modes() []string {
	return []string{
		"ALLOW_INVALID_DATES", "ERROR_FOR_DIVISION_BY_ZERO", "NO_AUTO_CREATE_USER", "NO_AUTO_VALUE_ON_ZERO", "NO_ENGINE_SUBSTITUTION",
		"NO_UNSIGNED_SUBTRACTION", "NO_ZERO_DATE", "NO_ZERO_IN_DATE", "ONLY_FULL_GROUP_BY", "PAD_CHAR_TO_FULL_LENGTH", "SIMULTANEOUS_ASSIGNMENT",
		"STRICT_ALL_TABLES", "STRICT_TRANS_TABLES", "TIME_ROUND_FRACTIONAL",
	}
}

func areModes(value string) bool {
	for mode := range strings.SplitSeq(value, ",") {
		if !slices.Contains(modes(), mode) {
			return false
		}
	}
	return true
}

func isOffset(value string) bool {
	return regexp.MustCompile(`^(-(0\d|1[0-2]):[0-5]\d|\+((0\d|1[0-2]):[0-5]\d|13:00))$`).MatchString(value)
}

func switches() kind { return kind{words: []string{"ON", "OFF"}} }

// size is in bytes, with the suffixes of option files: https://mariadb.com/kb/en/configuring-mariadb-with-option-files/.
func size(least, most, step float64) kind {
	units := map[string]float64{"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
	of := measured(units, "bytes", 1, least, most)
	of.tight = true
	if step > 1 {
		of.step = step
	}
	return of
}
