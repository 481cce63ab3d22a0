// Tenant is an operator for multi-tenant systems. It gives the apps of each tenant a PostgreSQL database with logins, users of Redis or
// ElastiCache, and credentials in Secrets or SSM parameters. Each credential is generated once.
package main

import "github.com/redis/go-redis/v9/logging"

func main() {
	logging.Disable() // It duplicates returned errors on stderr, in its own format.
	operator().Main()
}
