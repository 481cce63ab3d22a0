package postgres

import (
	"slices"
	"strings"
)

// isOption reports whether a DSN can have an option: one of the driver, of its pool, or a parameter of the server that is useful for an administrator's
// session. An unknown option would be sent to the server, which quotes it in its error. It could be a part of a password.
func isOption(name string) bool {
	return slices.Contains(driverOptions(), name) || slices.Contains(serverParameters(), strings.ToLower(name))
}

// driverOptions returns the options of the driver and of its pool.
func driverOptions() []string {
	return []string{
		"host", "port", "database", "user", "password", "passfile", "connect_timeout", "service", "servicefile", "options",
		"ssl", "sslmode", "sslkey", "sslcert", "sslcertmode", "sslrootcert", "sslnegotiation", "sslpassword", "sslsni", "krbspn", "krbsrvname",
		"target_session_attrs", "min_protocol_version", "max_protocol_version", "channel_binding", "require_auth",
		"statement_cache_capacity", "description_cache_capacity", "default_query_exec_mode",
		"pool_max_conns", "pool_min_conns", "pool_min_idle_conns", "pool_max_conn_lifetime", "pool_max_conn_idle_time", "pool_health_check_period",
		"pool_max_conn_lifetime_jitter", "pool_ping_timeout",
	}
}

// serverParameters returns parameters of the server. The option options can set others.
func serverParameters() []string {
	return []string{
		"application_name", "role", "search_path", "timezone", "datestyle", "intervalstyle", "client_encoding", "client_min_messages", "extra_float_digits",
		"bytea_output", "statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout", "idle_session_timeout", "transaction_timeout",
		"tcp_keepalives_idle", "tcp_keepalives_interval", "tcp_keepalives_count", "tcp_user_timeout", "client_connection_check_interval",
		"default_transaction_isolation", "default_transaction_read_only", "default_transaction_deferrable", "synchronous_commit", "deadlock_timeout",
		"work_mem", "maintenance_work_mem", "temp_buffers", "jit", "log_statement", "log_min_duration_statement", "log_min_messages",
		"log_min_error_statement", "log_error_verbosity", "lc_messages", "password_encryption", "createrole_self_grant", "standard_conforming_strings",
		"local_preload_libraries", "session_preload_libraries", "default_tablespace", "row_security",
	}
}
