-- Leaves connections to the operator and to backups: the user of the apps, whose name is in the variable app, gets all others. Those of superusers are not
-- counted. A standby has the limit of its primary, and at least as many connections.
select format('alter role %I connection limit %s', rolname, wanted) from pg_roles,
	(select greatest(1, current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int - 5) as wanted) as limits
	where rolname = :'app' and rolconnlimit <> wanted \gexec
