-- What the operator asks of a server and tells it, as functions that only its monitor may call. The superuser executes this when a database is created, and
-- whenever a primary has started: so each statement must be possible again.
begin;
create schema if not exists einmal;
create or replace function einmal.volume() returns text language sql security definer set search_path = pg_catalog, pg_temp
	as 'select pg_read_file(''/run/postgresql/volume'')';
create or replace function einmal.refused_parameters() returns text language sql security definer set search_path = pg_catalog, pg_temp
	as $$select coalesce(string_agg(name || ': ' || error, '; '), '') from pg_file_settings left join pg_settings using (name)
		where error is not null and pending_restart is not true$$;
create or replace function einmal.standbys() returns json language sql security definer set search_path = pg_catalog, pg_temp
	as $$select coalesce(json_agg(json_build_object('slot', slot_name, 'lost', coalesce(wal_status = 'lost', false), 'copying', coalesce(application_name =
		'pg_basebackup', false), 'state', coalesce(state, ''), 'lag', greatest(0, pg_wal_lsn_diff(pg_current_wal_lsn(), replay_lsn)::bigint)) order by slot_name), '[]')
		from pg_replication_slots left join pg_stat_replication on pid = active_pid
		where slot_type = 'physical' and slot_name ~ '^einmal_[0-9]+$' and not pg_is_in_recovery()$$;
create or replace function einmal.timeline() returns int language sql security definer set search_path = pg_catalog, pg_temp
	as $$select coalesce(max(('x' || left(name, 8))::bit(32)::int), 0) from pg_ls_waldir() where name ~ '^[0-9A-F]{24}$'$$;
create or replace function einmal.receiving() returns boolean language sql security definer set search_path = pg_catalog, pg_temp
	as $$select exists (select from pg_stat_wal_receiver where status = 'streaming')$$;
create or replace function einmal.forks() returns json language sql security definer set search_path = pg_catalog, pg_temp
	as $$select coalesce(json_object_agg(split_part(line, chr(9), 1), pg_wal_lsn_diff(split_part(line, chr(9), 2)::pg_lsn, '0/0')), '{}')
		from regexp_split_to_table(case when pg_is_in_recovery() then '' else
			pg_read_file('pg_wal/' || left(pg_walfile_name(pg_current_wal_lsn()), 8) || '.history', 0, 1000000, true) end, chr(10)) line
		where line ~ '^[0-9]'$$;
create or replace function einmal.unlogged() returns boolean language sql security definer set search_path = pg_catalog, pg_temp
	as $$select exists (select from pg_database, pg_ls_dir('base/' || oid, true, false) as file where file like '%\_init')$$;
create or replace function einmal.release(slot text) returns void language sql security definer set search_path = pg_catalog, pg_temp
	as $$select pg_drop_replication_slot(slot_name) from pg_replication_slots
		where slot_name = slot and slot_type = 'physical' and slot_name ~ '^einmal_[0-9]+$' and not active$$;
create or replace function einmal.promote(slots text[]) returns boolean language sql security definer set search_path = pg_catalog, pg_temp
	as $$select pg_create_physical_replication_slot(slot, true) from unnest(slots) slot
		where slot ~ '^einmal_[0-9]+$' and slot not in (select slot_name from pg_replication_slots);
	select case when pg_is_in_recovery() then pg_promote(true, 30) else true end$$;
revoke all on all functions in schema einmal from public;
grant pg_checkpoint to einmal_monitor;
grant usage on schema einmal to einmal_monitor;
grant execute on all functions in schema einmal to einmal_monitor;
commit;
