// Database is an operator for databases. It runs a PostgreSQL server for each Database, with a volume, a password and Services.
package main

import _ "time/tzdata" // for the schedules of backups: the image of the operator has no time zones

func main() {
	operator().Main()
}
