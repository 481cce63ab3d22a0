package manifest

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	v1 "github.com/einmal-operators/einmal/operators/database/api/v1"
)

//go:embed server.sh
var script string

//go:embed restore.sh
var restoreScript string

//go:embed backup.sh
var backupScript string

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

// ParametersKey is the key of the ConfigMap with the parameters of the spec.
const ParametersKey = "parameters.conf"

// Defaults returns lines of the configuration file that parameters of the spec come after. What a standby that is away has missed is kept until it is a tenth
// of the volume, so that it does not fill the volume. Then the standby copies the database again.
func Defaults(db *v1.Database) string {
	const mebibyte, least = 1 << 20, 64
	return fmt.Sprintf("max_slot_wal_keep_size = '%dMB'\n", max(least, db.Spec.Storage.Value()/mebibyte/10))
}

// Configuration identifies the configuration of a server with these parameters. A server with it has this value in its parameter einmal.configuration.
func Configuration(parameters string) string {
	sum := sha256.Sum256([]byte(postgresqlConf + "\x00" + pgHBA + "\x00" + parameters))
	return hex.EncodeToString(sum[:8])
}

// configMap holds the script of the Pods and the configuration of the server.
func configMap(db *v1.Database, settings Settings) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: meta(db, Config(db)), Data: map[string]string{
		"server.sh": script, "restore.sh": restoreScript, "backup.sh": backupScript, "pg_hba.conf": pgHBA, ParametersKey: settings.Parameters,
		"postgresql.conf": postgresqlConf + fmt.Sprintf("einmal.configuration = '%s'\n", Configuration(settings.Parameters)),
	}}
}
