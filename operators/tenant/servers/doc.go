// Package servers starts real servers of PostgreSQL and Redis, for tests and for "make run": each with a folder, a port and an
// administrator of its own, to be stopped, paused and started again. tools/servers.sh finds or installs the programs.
package servers
