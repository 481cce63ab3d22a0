package manifest

import (
	_ "embed"

	corev1 "k8s.io/api/core/v1"

	v1 "github.com/einmal-operators/einmal/operators/database/api/v1"
)

//go:embed mariadb/server.sh
var mariadbServer string

//go:embed mariadb/load.sh
var mariadbLoad string

//go:embed mariadb/dump.sh
var mariadbDump string

// mariadb returns the engine MariaDB.
func mariadb() engine {
	const port, data, run = 3306, "/data/mariadb", "/run/mysqld"
	// It succeeds also if the server refuses the connection, for example because there are too many.
	ping := []string{"mariadb-admin", "--no-defaults", "ping", "--silent"}
	return engine{ //nolint:gosec // MYSQL_PWD is the name of a variable.
		port: port, data: data, run: run, ready: ping, alive: ping, atStart: true,
		setPassword: `mariadb --execute "alter user '%s'@'%%' identified by 'PASSWORD'"`,
		monitored:   "einmal", shell: "mariadb",
		server:   []corev1.EnvVar{{Name: "DATA", Value: data}, {Name: "MYSQL_UNIX_PORT", Value: run + "/mysqld.sock"}},
		password: "MYSQL_PWD",
		backup:   appVariables,
		settings: []string{mariadbCnf},
		files:    mariadbFiles,
		// Parameters of the spec come after the name of their group.
		defaults: func(*v1.Database) string { return "[mariadbd]\n" },
	}
}

// mariadbCnf are the settings of the server. The seccomp profile of the Pods forbids what native asynchronous I/O needs. Slow statements are in the log of
// the container, if a parameter asks for them.
const mariadbCnf = `[mariadbd]
datadir = /data/mariadb
socket = /run/mysqld/mysqld.sock
pid-file = /run/mysqld/mysqld.pid
port = 3306
bind-address = *
tmpdir = /data/tmp
skip-name-resolve
local-infile = OFF
secure-file-priv = /run/mysqld/public
character-set-server = utf8mb4
innodb-use-native-aio = OFF
slow-query-log-file = /proc/self/fd/2
!include /config/parameters.conf
`

// mariadbFiles returns the files of the ConfigMap. A server says which configuration it has started with.
func mariadbFiles(configuration string) map[string]string {
	return map[string]string{
		"server.sh": mariadbServer, "load.sh": mariadbLoad, "dump.sh": mariadbDump, "mariadb.cnf": mariadbCnf, "configuration": configuration,
	}
}
