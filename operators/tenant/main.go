// Tenant is an operator for what the apps of tenants need in systems that tenants share: a database in PostgreSQL with logins, users of
// Redis or ElastiCache, and credentials in Secrets or SSM parameters, each of which is generated once.
package main

func main() {
	operator().Main()
}
