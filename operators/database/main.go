// Database is an operator for databases. It runs a PostgreSQL server for each Database, with a volume, a password and Services.
package main

func main() {
	operator().Main()
}
