package manifest

import (
	_ "embed"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	v1 "github.com/einmal-operators/einmal/operators/database/api/v1"
)

//go:embed postgresql/server.sh
var postgresqlServer string

//go:embed postgresql/load.sh
var postgresqlLoad string

//go:embed postgresql/monitor.sql
var postgresqlMonitor string

//go:embed postgresql/limit.sql
var postgresqlLimit string

//go:embed postgresql/dump.sh
var postgresqlDump string

// postgresql returns the engine PostgreSQL.
func postgresql() engine {
	const port, data, run = 5432, "/data/pgdata", "/run/postgresql"
	return engine{ //nolint:gosec // PGPASSWORD is the name of a variable.
		monitored: "postgres", shell: "psql", setPassword: `psql --command "alter role \"%s\" password 'PASSWORD'"`,
		port: port, data: data, run: run, standbys: true,
		ready: []string{"pg_isready", "-q"},
		// 1 means that the server rejects connections: it starts, stops or recovers, and must not be killed for that.
		alive:    []string{"/bin/sh", "-c", "pg_isready -q; [ $? -lt 2 ]"},
		server:   []corev1.EnvVar{{Name: "PGDATA", Value: data}, {Name: "PGHOST", Value: run}, {Name: "PGUSER", Value: "postgres"}},
		password: "PGPASSWORD",
		backup: func(db *v1.Database) []corev1.EnvVar {
			return []corev1.EnvVar{{Name: "PGDATABASE", Value: db.Spec.Auth.Database}, {Name: "PGUSER", Value: BackupUser}, {Name: "PGCONNECT_TIMEOUT", Value: "10"}}
		},
		settings: []string{postgresqlConf, pgHBA},
		files:    postgresqlFiles,
		defaults: postgresqlDefaults,
	}
}

// postgresqlFiles returns the files of the ConfigMap. A server with a configuration has its identity in the parameter einmal.configuration.
func postgresqlFiles(configuration string) map[string]string {
	return map[string]string{
		"server.sh": postgresqlServer, "load.sh": postgresqlLoad, "dump.sh": postgresqlDump, "monitor.sql": postgresqlMonitor, "limit.sql": postgresqlLimit,
		"pg_hba.conf":     pgHBA,
		"postgresql.conf": postgresqlConf + fmt.Sprintf("einmal.configuration = '%s'\n", configuration),
	}
}

// settings of the server. With hot_standby_feedback, the primary keeps what a query of a standby needs, so that it is not cancelled: a backup can take hours. Debian's packages compile expressions with a library that the images leave out.
const postgresqlConf = `listen_addresses = '*'
port = 5432
unix_socket_directories = '/run/postgresql'
password_encryption = scram-sha-256
wal_level = replica
wal_log_hints = on
wal_sender_timeout = 10s
wal_receiver_timeout = 10s
wal_receiver_status_interval = 1s
wal_retrieve_retry_interval = 2s
hot_standby_feedback = on
jit = off
log_line_prefix = '%m [%p] %u@%d '
include = 'parameters.conf'
`

// Only the Pod itself can log in as postgres, and without a password: kubectl exec POD -- psql. The user of the standbys can only replicate.
const pgHBA = `local all postgres peer
local all all      scram-sha-256
host  all postgres all reject
host  all einmal_replication all reject
host  replication einmal_replication all scram-sha-256
host  all all      all scram-sha-256
`

// postgresqlDefaults limits the write-ahead log, so that it does not fill a small volume: a server whose log cannot be written ends. The log gets a tenth of the
// volume, as far as PostgreSQL's own default of 1GB, and another tenth for a standby that is away, which copies the database again then.
func postgresqlDefaults(db *v1.Database) string {
	const mebibyte, least, most = 1 << 20, 48, 1024
	tenth := max(least, db.Spec.Storage.Value()/mebibyte/10)
	log := min(tenth, most)
	return fmt.Sprintf("max_slot_wal_keep_size = '%dMB'\nmax_wal_size = '%dMB'\nmin_wal_size = '%dMB'\n", tenth, log, min(max(log/2, 32), 80))
}
