// Tenant is an operator for what the apps of tenants need in systems that tenants share: a database in PostgreSQL with logins, users of
// Redis or ElastiCache, and credentials in Secrets or SSM parameters, each of which is generated once.
package main

import "github.com/redis/go-redis/v9/logging"

func main() {
	logging.Disable() // It writes to stderr in a form of its own what is told as an error too.
	operator().Main()
}
