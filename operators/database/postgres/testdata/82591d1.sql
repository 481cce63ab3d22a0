-- What the script of commit 82591d1 executed in a new database.
create role app login password 'app';
create database app owner app;
create role einmal_monitor login password 'monitor' connection limit 4;
create role einmal_replication login replication password 'replication';
create schema einmal;
create function einmal.volume() returns text language sql security definer set search_path = pg_catalog, pg_temp
	as 'select pg_read_file(''/run/postgresql/volume'')';
create function einmal.refused_parameters() returns text language sql security definer set search_path = pg_catalog, pg_temp
	as $$select coalesce(string_agg(name || ': ' || error, '; '), '') from pg_file_settings left join pg_settings using (name)
		where error is not null and pending_restart is not true$$;
create function einmal.standbys() returns json language sql security definer set search_path = pg_catalog, pg_temp
	as $$select coalesce(json_agg(json_build_object('slot', slot_name, 'lost', coalesce(wal_status = 'lost', false), 'copying', coalesce(application_name =
		'pg_basebackup', false), 'state', coalesce(state, ''), 'lag', greatest(0, pg_wal_lsn_diff(pg_current_wal_lsn(), replay_lsn)::bigint)) order by slot_name), '[]')
		from pg_replication_slots left join pg_stat_replication on pid = active_pid
		where slot_type = 'physical' and slot_name ~ '^einmal_[0-9]+$' and not pg_is_in_recovery()$$;
create function einmal.release(slot text) returns void language sql security definer set search_path = pg_catalog, pg_temp
	as $$select pg_drop_replication_slot(slot_name) from pg_replication_slots
		where slot_name = slot and slot_type = 'physical' and slot_name ~ '^einmal_[0-9]+$' and not active$$;
create function einmal.promote(slots text[]) returns boolean language sql security definer set search_path = pg_catalog, pg_temp
	as $$select pg_create_physical_replication_slot(slot, true) from unnest(slots) slot
		where slot ~ '^einmal_[0-9]+$' and slot not in (select slot_name from pg_replication_slots);
	select case when pg_is_in_recovery() then pg_promote(true, 30) else true end$$;
revoke all on all functions in schema einmal from public;
grant pg_checkpoint to einmal_monitor;
grant usage on schema einmal to einmal_monitor;
grant execute on all functions in schema einmal to einmal_monitor;
