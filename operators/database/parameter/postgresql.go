package parameter

import "strings"

// largest is the largest number in a parameter of PostgreSQL.
const largest = 2147483647

// PostgreSQL returns the parameters of PostgreSQL. Names and ranges are those of its manual, chapter "Server Configuration".
func PostgreSQL() Engine {
	return Engine{
		list: postgreSQL(), bounds: []bound{
			{sharedBuffers, memory, "the memory of the server", "a quarter of it is usual"},
			{maxWALSize, volume, "the volume", "a tenth of it is the default"},
			{minWALSize, volume, "the volume", "a twentieth of it is the default"},
		},
		line: func(name, value string) string { return name + " = '" + strings.ReplaceAll(value, "'", "''") + "'\n" },
	}
}

const (
	sharedBuffers = "shared_buffers"
	maxWALSize    = "max_wal_size"
	minWALSize    = "min_wal_size"
)

// postgreSQL returns the parameters that can be set. It has none that decides where the server listens, where its files are, who may log in or how it writes
// its log, because the operator depends on these, none that loads a library, which may be missing in an image, and none that gives up data for speed.
func postgreSQL() map[string]kind {
	switches := kind{words: []string{"on", "off"}}
	return map[string]kind{
		"autovacuum":                            switches,
		"autovacuum_analyze_scale_factor":       fraction(0, 100),
		"autovacuum_analyze_threshold":          whole(0, largest),
		"autovacuum_max_workers":                whole(1, 1000),
		"autovacuum_naptime":                    seconds(1, 2147483),
		"autovacuum_vacuum_cost_delay":          milliseconds(-1, 100),
		"autovacuum_vacuum_cost_limit":          whole(-1, 10000),
		"autovacuum_vacuum_insert_scale_factor": fraction(0, 100),
		"autovacuum_vacuum_scale_factor":        fraction(0, 100),
		"autovacuum_vacuum_threshold":           whole(0, largest),
		"checkpoint_completion_target":          fraction(0, 1),
		"checkpoint_timeout":                    seconds(30, 86400),
		"commit_delay":                          whole(0, 100000),
		"deadlock_timeout":                      milliseconds(1, largest),
		"default_statistics_target":             whole(1, 10000),
		"default_transaction_isolation":         {words: []string{"read committed", "repeatable read", "serializable"}},
		"effective_cache_size":                  blocks(1, largest),
		"effective_io_concurrency":              whole(0, 1000),
		"from_collapse_limit":                   whole(1, largest),
		"gin_pending_list_limit":                kilobytes(64),
		"hash_mem_multiplier":                   fraction(1, 1000),
		"idle_in_transaction_session_timeout":   milliseconds(0, largest),
		"idle_session_timeout":                  milliseconds(0, largest),
		"join_collapse_limit":                   whole(1, largest),
		"lock_timeout":                          milliseconds(0, largest),
		"log_autovacuum_min_duration":           milliseconds(-1, largest),
		"log_checkpoints":                       switches,
		"log_lock_waits":                        switches,
		"log_min_duration_statement":            milliseconds(-1, largest),
		"log_temp_files":                        kilobytes(-1),
		"maintenance_io_concurrency":            whole(0, 1000),
		"maintenance_work_mem":                  kilobytes(1024),
		"max_connections":                       whole(10, 10000),
		"max_locks_per_transaction":             whole(10, 100000),
		"max_parallel_maintenance_workers":      whole(0, 1024),
		"max_parallel_workers":                  whole(0, 1024),
		"max_parallel_workers_per_gather":       whole(0, 1024),
		"max_prepared_transactions":             whole(0, 10000),
		maxWALSize:                              megabytes(32, largest),
		"max_worker_processes":                  whole(8, 1000),
		minWALSize:                              megabytes(32, largest),
		"random_page_cost":                      fraction(0, 1e10),
		"seq_page_cost":                         fraction(0, 1e10),
		sharedBuffers:                           blocks(16, 1073741823),
		"statement_timeout":                     milliseconds(0, largest),
		"temp_buffers":                          blocks(100, 1073741823),
		"temp_file_limit":                       kilobytes(-1),
		"track_activity_query_size":             measured(sizes(), "bytes", 1, 100, 1048576),
		"track_functions":                       {words: []string{"none", "pl", "all"}},
		"track_io_timing":                       switches,
		"track_wal_io_timing":                   switches,
		"vacuum_cost_delay":                     milliseconds(0, 100),
		"vacuum_cost_limit":                     whole(1, 10000),
		"wal_compression":                       {words: []string{"on", "off", "pglz"}},
		"wal_writer_delay":                      milliseconds(1, 10000),
		"work_mem":                              kilobytes(64),
	}
}

func seconds(least, most float64) kind { return measured(times(), "s", 1000, least, most) }

func milliseconds(least, most float64) kind {
	of := measured(times(), "ms", 1, least, most)
	of.whole = false
	return of
}

func kilobytes(least float64) kind { return measured(sizes(), "kB", 1<<10, least, largest) }

func megabytes(least, most float64) kind { return measured(sizes(), "MB", 1<<20, least, most) }

// blocks are what PostgreSQL reads and writes at once.
func blocks(least, most float64) kind { return measured(sizes(), "blocks of 8kB", 8<<10, least, most) }

// times returns how many milliseconds a unit of time has.
func times() map[string]float64 {
	return map[string]float64{"ms": 1, "s": 1000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
}

// sizes returns how many bytes a unit of size has.
func sizes() map[string]float64 {
	return map[string]float64{"B": 1, "kB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30, "TB": 1 << 40}
}
