package manifest

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"

	v1 "github.com/einmal-operators/einmal/operators/database/api/v1"
)

//go:embed common.sh
var commonScript string

//go:embed backup.sh
var backupScript string

// engine is what the objects of a Database depend on because of its engine.
type engine struct {
	// port is the port of the server.
	port int32
	// data is the folder with the database, and run the one with the socket, which is in memory.
	data, run string
	// ready is the command that succeeds if the server accepts connections, and alive the one that fails if it must be killed.
	ready, alive []string
	// server are the variables of the programs in the containers of servers.
	server []corev1.EnvVar
	// backup returns the variables of a program that makes a backup, and password is that with the password.
	backup   func(db *v1.Database) []corev1.EnvVar
	password string
	// monitored is the database that the operator logs in to as the monitor.
	monitored string
	// setPassword is the command in the server's container that sets the password of a user.
	setPassword string
	// shell is the command in the server's container with which a person executes statements as the superuser.
	shell string
	// settings are the files with the settings of the server that do not depend on the Database.
	settings []string
	// files returns the scripts and the settings by the names of their files. The argument is what Configuration returns.
	files func(configuration string) map[string]string
	// defaults returns lines with parameters that those of the spec come after.
	defaults func(db *v1.Database) string
	// standbys reports whether there can be standbys, and atStart whether servers read their configuration only when they start.
	standbys, atStart bool
}

// engineOf returns the engine of a Database.
func engineOf(db *v1.Database) engine {
	if db.Spec.Engine == v1.MariaDB {
		return mariadb()
	}
	return postgresql()
}

// appVariables name the database of the apps and its owner.
func appVariables(db *v1.Database) []corev1.EnvVar {
	return []corev1.EnvVar{{Name: "APP_DATABASE", Value: db.Spec.Auth.Database}, {Name: "APP_USERNAME", Value: db.Spec.Auth.Username}}
}

// Defaults returns lines of the configuration file that parameters of the spec come after.
func Defaults(db *v1.Database) string { return engineOf(db).defaults(db) }

// Configuration identifies the configuration of the servers of a Database with these parameters. Where servers read it only when they start, only the
// parameters count: the other settings change with an upgrade of the operator, which restarts no server.
func Configuration(db *v1.Database, parameters string) string {
	if ReadsAtStart(db) {
		return identity(parameters)
	}
	return EarlierConfiguration(db, parameters)
}

// EarlierConfiguration identifies the configuration as operators did that did not leave out settings. A server that one of them has started says so.
func EarlierConfiguration(db *v1.Database, parameters string) string {
	return identity(append(engineOf(db).settings, parameters)...)
}

// identity returns a short text that depends on all texts.
func identity(texts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(texts, "\x00")))
	return hex.EncodeToString(sum[:8])
}

// ParametersKey is the key of the ConfigMap with the parameters of the spec.
const ParametersKey = "parameters.conf"

// configMap holds the scripts of the Pods and the configuration of the server.
func configMap(db *v1.Database, settings Settings) *corev1.ConfigMap {
	files := map[string]string{"common.sh": commonScript, "backup.sh": backupScript, ParametersKey: settings.Parameters}
	maps.Copy(files, engineOf(db).files(Configuration(db, settings.Parameters)))
	return &corev1.ConfigMap{ObjectMeta: meta(db, Config(db)), Data: files}
}

// Port returns the port of the servers.
func Port(db *v1.Database) int32 { return engineOf(db).port }

// Container returns the name of the server's container, which is also that of its port.
func Container(db *v1.Database) string { return string(db.Spec.Engine) }

// IsServer reports whether a container of a Pod is that of the server.
func IsServer(container string) bool {
	return container == string(v1.PostgreSQL) || container == string(v1.MariaDB)
}

// ImageFlag returns the flag of the operator with the image of the server in a Pod.
func ImageFlag(pod corev1.PodSpec) string {
	for _, container := range pod.Containers {
		if container.Name == string(v1.MariaDB) {
			return "--mariadb-image"
		}
	}
	return "--image"
}

// MonitorDatabase returns the database that the operator logs in to as the monitor.
func MonitorDatabase(db *v1.Database) string { return engineOf(db).monitored }

// Shell returns the command in the server's container with which a person executes statements as the superuser.
func Shell(db *v1.Database) string { return engineOf(db).shell }

// SetPassword returns the command in the server's container that sets the password of the apps to PASSWORD.
func SetPassword(db *v1.Database) string {
	return fmt.Sprintf(engineOf(db).setPassword, db.Spec.Auth.Username)
}

// HasStandbys reports whether a Database can have standbys.
func HasStandbys(db *v1.Database) bool { return engineOf(db).standbys }

// ReadsAtStart reports whether the servers of a Database read their configuration only when they start.
func ReadsAtStart(db *v1.Database) bool { return engineOf(db).atStart }
