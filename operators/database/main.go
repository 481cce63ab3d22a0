// Database is an operator for databases. It runs a PostgreSQL server for each Database, with a volume, a password and Services. In the Pods of databases,
// its image also copies backups to an S3 bucket and fetches them.
package main

import (
	"os"
	_ "time/tzdata" // for the schedules of backups: the image of the operator has no time zones
)

func main() {
	if code, done := runInPod(os.Args[1:]); done {
		os.Exit(code)
	}
	operator().Main()
}
