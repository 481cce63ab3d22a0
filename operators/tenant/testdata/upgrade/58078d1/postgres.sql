--
-- PostgreSQL database cluster dump
--

SET default_transaction_read_only = off;

SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;

--
-- Roles
--

CREATE ROLE "t_aws-fresh";
ALTER ROLE "t_aws-fresh" WITH NOSUPERUSER INHERIT NOCREATEROLE NOCREATEDB NOLOGIN NOREPLICATION NOBYPASSRLS;
COMMENT ON ROLE "t_aws-fresh" IS 'tenants.einmal.dev@upgrade//aws-fresh';
CREATE ROLE "t_aws-fresh_reports_a";
ALTER ROLE "t_aws-fresh_reports_a" WITH NOSUPERUSER INHERIT NOCREATEROLE NOCREATEDB LOGIN NOREPLICATION NOBYPASSRLS CONNECTION LIMIT 50 PASSWORD 'SCRAM-SHA-256$4096:x9iSYV63eJrRGUcxz6AgKQ==$VQy2WlJd8jRo0GZWEiD/Zh0bH/yfHlDnAlclKq5oul8=:7RdEcFljnbDZQ6ybzFePzkJwGML0Cl1H5Y7Y/Myoqa0=';
COMMENT ON ROLE "t_aws-fresh_reports_a" IS 'tenants.einmal.dev@upgrade//aws-fresh/reports';
CREATE ROLE "t_aws-fresh_ro";
ALTER ROLE "t_aws-fresh_ro" WITH NOSUPERUSER INHERIT NOCREATEROLE NOCREATEDB NOLOGIN NOREPLICATION NOBYPASSRLS;
COMMENT ON ROLE "t_aws-fresh_ro" IS 'tenants.einmal.dev@upgrade//aws-fresh';
CREATE ROLE "t_aws-fresh_rw";
ALTER ROLE "t_aws-fresh_rw" WITH NOSUPERUSER INHERIT NOCREATEROLE NOCREATEDB NOLOGIN NOREPLICATION NOBYPASSRLS;
COMMENT ON ROLE "t_aws-fresh_rw" IS 'tenants.einmal.dev@upgrade//aws-fresh';
CREATE ROLE "t_aws-fresh_web_a";
ALTER ROLE "t_aws-fresh_web_a" WITH NOSUPERUSER INHERIT NOCREATEROLE NOCREATEDB LOGIN NOREPLICATION NOBYPASSRLS CONNECTION LIMIT 50 PASSWORD 'SCRAM-SHA-256$4096:4Zyqj3jPTBKYPK0sG+piNg==$v1DBA8AshnFOJ/5mYY9gyK4Aeypd19gmA8wk3SXtOBs=:XM5+DE/3o/rBBJqDmcAe3D2OQ+4Vfhh2JJJo57bkrQM=';
COMMENT ON ROLE "t_aws-fresh_web_a" IS 'tenants.einmal.dev@upgrade//aws-fresh/web';
CREATE ROLE "t_aws-overlap";
ALTER ROLE "t_aws-overlap" WITH NOSUPERUSER INHERIT NOCREATEROLE NOCREATEDB NOLOGIN NOREPLICATION NOBYPASSRLS;
COMMENT ON ROLE "t_aws-overlap" IS 'tenants.einmal.dev@upgrade//aws-overlap';
CREATE ROLE "t_aws-overlap_ro";
ALTER ROLE "t_aws-overlap_ro" WITH NOSUPERUSER INHERIT NOCREATEROLE NOCREATEDB NOLOGIN NOREPLICATION NOBYPASSRLS;
COMMENT ON ROLE "t_aws-overlap_ro" IS 'tenants.einmal.dev@upgrade//aws-overlap';
CREATE ROLE "t_aws-overlap_rw";
ALTER ROLE "t_aws-overlap_rw" WITH NOSUPERUSER INHERIT NOCREATEROLE NOCREATEDB NOLOGIN NOREPLICATION NOBYPASSRLS;
COMMENT ON ROLE "t_aws-overlap_rw" IS 'tenants.einmal.dev@upgrade//aws-overlap';
CREATE ROLE "t_aws-overlap_web_a";
ALTER ROLE "t_aws-overlap_web_a" WITH NOSUPERUSER INHERIT NOCREATEROLE NOCREATEDB LOGIN NOREPLICATION NOBYPASSRLS CONNECTION LIMIT 10 PASSWORD 'SCRAM-SHA-256$4096:mY152eVGMcdDXnwO8ZQaSQ==$CqCQmB8hFp54tWnhprTl7D83+zyLYPyhzqSF5QWAPJk=:BZAhKV4PpzNftThBJFKWREeTomZ02CEIcUezRIRftTg=';
COMMENT ON ROLE "t_aws-overlap_web_a" IS 'tenants.einmal.dev@upgrade//aws-overlap/web';
CREATE ROLE "t_aws-overlap_web_b";
ALTER ROLE "t_aws-overlap_web_b" WITH NOSUPERUSER INHERIT NOCREATEROLE NOCREATEDB LOGIN NOREPLICATION NOBYPASSRLS CONNECTION LIMIT 10 PASSWORD 'SCRAM-SHA-256$4096:qr7yO5dPn0yl01zK61cVEw==$nVKNMoXGsWOy2VTmjXrxwG7BsjQpAMb7g/nFh17z5Xc=:3xXIMzlVXouaMEql5H+lPlZoBS0lKKw0vaueMwju6gU=';
COMMENT ON ROLE "t_aws-overlap_web_b" IS 'tenants.einmal.dev@upgrade//aws-overlap/web';
CREATE ROLE "t_aws-retained";
ALTER ROLE "t_aws-retained" WITH NOSUPERUSER INHERIT NOCREATEROLE NOCREATEDB NOLOGIN NOREPLICATION NOBYPASSRLS;
COMMENT ON ROLE "t_aws-retained" IS 'tenants.einmal.dev@upgrade//aws-retained';
CREATE ROLE "t_aws-retained_old_a";
ALTER ROLE "t_aws-retained_old_a" WITH NOSUPERUSER INHERIT NOCREATEROLE NOCREATEDB LOGIN NOREPLICATION NOBYPASSRLS CONNECTION LIMIT 10 PASSWORD 'SCRAM-SHA-256$4096:pzxvq1ms8lzbBj3HPox+YA==$OmdEKFyjEgZW71UxKUmRm2f0lweArj2IH4Aw0zXE2YI=:LuBil5uSbCUsf8c+N25Kk3vavZx64KTGHnLG4gxY35I=';
COMMENT ON ROLE "t_aws-retained_old_a" IS 'tenants.einmal.dev@upgrade//aws-retained/old';
CREATE ROLE "t_aws-retained_ro";
ALTER ROLE "t_aws-retained_ro" WITH NOSUPERUSER INHERIT NOCREATEROLE NOCREATEDB NOLOGIN NOREPLICATION NOBYPASSRLS;
COMMENT ON ROLE "t_aws-retained_ro" IS 'tenants.einmal.dev@upgrade//aws-retained';
CREATE ROLE "t_aws-retained_rw";
ALTER ROLE "t_aws-retained_rw" WITH NOSUPERUSER INHERIT NOCREATEROLE NOCREATEDB NOLOGIN NOREPLICATION NOBYPASSRLS;
COMMENT ON ROLE "t_aws-retained_rw" IS 'tenants.einmal.dev@upgrade//aws-retained';
CREATE ROLE "t_aws-retained_web_a";
ALTER ROLE "t_aws-retained_web_a" WITH NOSUPERUSER INHERIT NOCREATEROLE NOCREATEDB LOGIN NOREPLICATION NOBYPASSRLS CONNECTION LIMIT 10 PASSWORD 'SCRAM-SHA-256$4096:QO4HP/v+XecKmQp2WqTECw==$TIJrBKEeRcYvwL/aKTL2IJAwqoQA+IbiJuppKmTCwZI=:Fs2NqXhZER+4q9pKBP0iNWFg8qm5d64zKrnJebjVrZI=';
COMMENT ON ROLE "t_aws-retained_web_a" IS 'tenants.einmal.dev@upgrade//aws-retained/web';
CREATE ROLE "t_aws-rotated";
ALTER ROLE "t_aws-rotated" WITH NOSUPERUSER INHERIT NOCREATEROLE NOCREATEDB NOLOGIN NOREPLICATION NOBYPASSRLS;
COMMENT ON ROLE "t_aws-rotated" IS 'tenants.einmal.dev@upgrade//aws-rotated';
CREATE ROLE "t_aws-rotated_ro";
ALTER ROLE "t_aws-rotated_ro" WITH NOSUPERUSER INHERIT NOCREATEROLE NOCREATEDB NOLOGIN NOREPLICATION NOBYPASSRLS;
COMMENT ON ROLE "t_aws-rotated_ro" IS 'tenants.einmal.dev@upgrade//aws-rotated';
CREATE ROLE "t_aws-rotated_rw";
ALTER ROLE "t_aws-rotated_rw" WITH NOSUPERUSER INHERIT NOCREATEROLE NOCREATEDB NOLOGIN NOREPLICATION NOBYPASSRLS;
COMMENT ON ROLE "t_aws-rotated_rw" IS 'tenants.einmal.dev@upgrade//aws-rotated';
CREATE ROLE "t_aws-rotated_web_a";
ALTER ROLE "t_aws-rotated_web_a" WITH NOSUPERUSER INHERIT NOCREATEROLE NOCREATEDB NOLOGIN NOREPLICATION NOBYPASSRLS CONNECTION LIMIT 10 PASSWORD 'SCRAM-SHA-256$4096:CNghbhQdy7xxBI03veq5OA==$MgfZpl1sGr3Wg0F7S5JqeUuIyZgad06FZdyFF8GlPgI=:oJQMwCp3yb4WtOK7shwDg/M0ew2Z1hoOGTJs3vVOa/8=';
COMMENT ON ROLE "t_aws-rotated_web_a" IS 'tenants.einmal.dev@upgrade//aws-rotated/web';
CREATE ROLE "t_aws-rotated_web_b";
ALTER ROLE "t_aws-rotated_web_b" WITH NOSUPERUSER INHERIT NOCREATEROLE NOCREATEDB LOGIN NOREPLICATION NOBYPASSRLS CONNECTION LIMIT 10 PASSWORD 'SCRAM-SHA-256$4096:EhgIWVuNfbTZjMA1eeSOLw==$i2mQHFF0631LpXw0FQzRcUTglr+SqYsW5AcT6mBkV/c=:T+pOMGfyHZt7eZ5/kVlaJhuV3Md3AT48x0D2T+YPkvc=';
COMMENT ON ROLE "t_aws-rotated_web_b" IS 'tenants.einmal.dev@upgrade//aws-rotated/web';
CREATE ROLE "t_local-fresh";
ALTER ROLE "t_local-fresh" WITH NOSUPERUSER INHERIT NOCREATEROLE NOCREATEDB NOLOGIN NOREPLICATION NOBYPASSRLS;
COMMENT ON ROLE "t_local-fresh" IS 'tenants.einmal.dev@upgrade//local-fresh';
CREATE ROLE "t_local-fresh_reports_a";
ALTER ROLE "t_local-fresh_reports_a" WITH NOSUPERUSER INHERIT NOCREATEROLE NOCREATEDB LOGIN NOREPLICATION NOBYPASSRLS CONNECTION LIMIT 50 PASSWORD 'SCRAM-SHA-256$4096:aCLKmbH3KThtfHed3SyqXg==$UQZRkpN4f4tubb9rZSUnGt2xvBEbM391K+1ccj1qVTc=:6c9xmoBEf7QhLhqBpV3hnHFSFEE1ZEOOtIPv11GIDRI=';
COMMENT ON ROLE "t_local-fresh_reports_a" IS 'tenants.einmal.dev@upgrade//local-fresh/reports';
CREATE ROLE "t_local-fresh_ro";
ALTER ROLE "t_local-fresh_ro" WITH NOSUPERUSER INHERIT NOCREATEROLE NOCREATEDB NOLOGIN NOREPLICATION NOBYPASSRLS;
COMMENT ON ROLE "t_local-fresh_ro" IS 'tenants.einmal.dev@upgrade//local-fresh';
CREATE ROLE "t_local-fresh_rw";
ALTER ROLE "t_local-fresh_rw" WITH NOSUPERUSER INHERIT NOCREATEROLE NOCREATEDB NOLOGIN NOREPLICATION NOBYPASSRLS;
COMMENT ON ROLE "t_local-fresh_rw" IS 'tenants.einmal.dev@upgrade//local-fresh';
CREATE ROLE "t_local-fresh_web_a";
ALTER ROLE "t_local-fresh_web_a" WITH NOSUPERUSER INHERIT NOCREATEROLE NOCREATEDB LOGIN NOREPLICATION NOBYPASSRLS CONNECTION LIMIT 50 PASSWORD 'SCRAM-SHA-256$4096:oco+ujeSEXaZlMUaD6MbbQ==$omyZRYRVazvfM/b4+GWKM069CswOQYL0r7JjeiNea54=:Hp0qASWjtK+4cMGW06lqZo3/hRqTJG/7221XCvERt28=';
COMMENT ON ROLE "t_local-fresh_web_a" IS 'tenants.einmal.dev@upgrade//local-fresh/web';
CREATE ROLE "t_local-overlap";
ALTER ROLE "t_local-overlap" WITH NOSUPERUSER INHERIT NOCREATEROLE NOCREATEDB NOLOGIN NOREPLICATION NOBYPASSRLS;
COMMENT ON ROLE "t_local-overlap" IS 'tenants.einmal.dev@upgrade//local-overlap';
CREATE ROLE "t_local-overlap_ro";
ALTER ROLE "t_local-overlap_ro" WITH NOSUPERUSER INHERIT NOCREATEROLE NOCREATEDB NOLOGIN NOREPLICATION NOBYPASSRLS;
COMMENT ON ROLE "t_local-overlap_ro" IS 'tenants.einmal.dev@upgrade//local-overlap';
CREATE ROLE "t_local-overlap_rw";
ALTER ROLE "t_local-overlap_rw" WITH NOSUPERUSER INHERIT NOCREATEROLE NOCREATEDB NOLOGIN NOREPLICATION NOBYPASSRLS;
COMMENT ON ROLE "t_local-overlap_rw" IS 'tenants.einmal.dev@upgrade//local-overlap';
CREATE ROLE "t_local-overlap_web_a";
ALTER ROLE "t_local-overlap_web_a" WITH NOSUPERUSER INHERIT NOCREATEROLE NOCREATEDB LOGIN NOREPLICATION NOBYPASSRLS CONNECTION LIMIT 10 PASSWORD 'SCRAM-SHA-256$4096:DzOW8OAUgCglJgo22xupzw==$qRd1mtOE5A9X5BVSE+vRpx3CugWgUuS+HVmN5wUy9OQ=:D6fmXD5CPa+c6aZHtCzwxFGq6KIRjrXDKm/2qk6ap78=';
COMMENT ON ROLE "t_local-overlap_web_a" IS 'tenants.einmal.dev@upgrade//local-overlap/web';
CREATE ROLE "t_local-overlap_web_b";
ALTER ROLE "t_local-overlap_web_b" WITH NOSUPERUSER INHERIT NOCREATEROLE NOCREATEDB LOGIN NOREPLICATION NOBYPASSRLS CONNECTION LIMIT 10 PASSWORD 'SCRAM-SHA-256$4096:jP+HekSwipf1nPVqmv1UZA==$hNWi94p3gkw17r/y2rTdMFNWW9p4B4eGONAWn8mgR1s=:O6IxldD2sDjcw9Kc/877DWnaUh4kUlBqJ28GoMYrgt4=';
COMMENT ON ROLE "t_local-overlap_web_b" IS 'tenants.einmal.dev@upgrade//local-overlap/web';
CREATE ROLE "t_local-retained";
ALTER ROLE "t_local-retained" WITH NOSUPERUSER INHERIT NOCREATEROLE NOCREATEDB NOLOGIN NOREPLICATION NOBYPASSRLS;
COMMENT ON ROLE "t_local-retained" IS 'tenants.einmal.dev@upgrade//local-retained';
CREATE ROLE "t_local-retained_old_a";
ALTER ROLE "t_local-retained_old_a" WITH NOSUPERUSER INHERIT NOCREATEROLE NOCREATEDB LOGIN NOREPLICATION NOBYPASSRLS CONNECTION LIMIT 10 PASSWORD 'SCRAM-SHA-256$4096:C7uaHk/2zyWbqeg5m/DruQ==$tBSxK7hdgRSCXWWjX4wpUX/Zpt/S0KjdMO1gqsYCrfs=:Qj3ili/O9nCzjVv233kcc1R93xFe3b7QmCSoE7atSMc=';
COMMENT ON ROLE "t_local-retained_old_a" IS 'tenants.einmal.dev@upgrade//local-retained/old';
CREATE ROLE "t_local-retained_ro";
ALTER ROLE "t_local-retained_ro" WITH NOSUPERUSER INHERIT NOCREATEROLE NOCREATEDB NOLOGIN NOREPLICATION NOBYPASSRLS;
COMMENT ON ROLE "t_local-retained_ro" IS 'tenants.einmal.dev@upgrade//local-retained';
CREATE ROLE "t_local-retained_rw";
ALTER ROLE "t_local-retained_rw" WITH NOSUPERUSER INHERIT NOCREATEROLE NOCREATEDB NOLOGIN NOREPLICATION NOBYPASSRLS;
COMMENT ON ROLE "t_local-retained_rw" IS 'tenants.einmal.dev@upgrade//local-retained';
CREATE ROLE "t_local-retained_web_a";
ALTER ROLE "t_local-retained_web_a" WITH NOSUPERUSER INHERIT NOCREATEROLE NOCREATEDB LOGIN NOREPLICATION NOBYPASSRLS CONNECTION LIMIT 10 PASSWORD 'SCRAM-SHA-256$4096:JhzzmfrTuf2N8AeGzbkFYA==$z+6qjMX2MU0lCTkJ3H8JnUDYU1bBwulDQgJGtQOuw8I=:cdTd1JsFtdN0mRxvW7KdIjZCiaR4fyvt4Vf22953CV0=';
COMMENT ON ROLE "t_local-retained_web_a" IS 'tenants.einmal.dev@upgrade//local-retained/web';
CREATE ROLE "t_local-rotated";
ALTER ROLE "t_local-rotated" WITH NOSUPERUSER INHERIT NOCREATEROLE NOCREATEDB NOLOGIN NOREPLICATION NOBYPASSRLS;
COMMENT ON ROLE "t_local-rotated" IS 'tenants.einmal.dev@upgrade//local-rotated';
CREATE ROLE "t_local-rotated_ro";
ALTER ROLE "t_local-rotated_ro" WITH NOSUPERUSER INHERIT NOCREATEROLE NOCREATEDB NOLOGIN NOREPLICATION NOBYPASSRLS;
COMMENT ON ROLE "t_local-rotated_ro" IS 'tenants.einmal.dev@upgrade//local-rotated';
CREATE ROLE "t_local-rotated_rw";
ALTER ROLE "t_local-rotated_rw" WITH NOSUPERUSER INHERIT NOCREATEROLE NOCREATEDB NOLOGIN NOREPLICATION NOBYPASSRLS;
COMMENT ON ROLE "t_local-rotated_rw" IS 'tenants.einmal.dev@upgrade//local-rotated';
CREATE ROLE "t_local-rotated_web_a";
ALTER ROLE "t_local-rotated_web_a" WITH NOSUPERUSER INHERIT NOCREATEROLE NOCREATEDB NOLOGIN NOREPLICATION NOBYPASSRLS CONNECTION LIMIT 10 PASSWORD 'SCRAM-SHA-256$4096:JjEZOfrJKN3SRjXvYFYrmA==$GY8NNa/x+3VMXV72Udyl54KVpVcs1psujJRefFEKsgw=:p+N4E0MZLPzXJvzFvoWzABIeVhk2Y55lamkt+tyyZRk=';
COMMENT ON ROLE "t_local-rotated_web_a" IS 'tenants.einmal.dev@upgrade//local-rotated/web';
CREATE ROLE "t_local-rotated_web_b";
ALTER ROLE "t_local-rotated_web_b" WITH NOSUPERUSER INHERIT NOCREATEROLE NOCREATEDB LOGIN NOREPLICATION NOBYPASSRLS CONNECTION LIMIT 10 PASSWORD 'SCRAM-SHA-256$4096:AFGFu+YYkHxY4ow0XQIQyQ==$wMvu7Lbzeqb8i2SBI0kGOz8PlWl3GO0zFKnMyojTxkY=:ZJDh93avI/fgqei7PGF2tT7OgATY7ayZh9KT+ouQDIo=';
COMMENT ON ROLE "t_local-rotated_web_b" IS 'tenants.einmal.dev@upgrade//local-rotated/web';

--
-- User Configurations
--

--
-- User Config "t_aws-fresh_reports_a"
--

ALTER ROLE "t_aws-fresh_reports_a" SET role TO 't_aws-fresh_ro';
ALTER ROLE "t_aws-fresh_reports_a" SET statement_timeout TO '300000';
ALTER ROLE "t_aws-fresh_reports_a" SET idle_in_transaction_session_timeout TO '300000';

--
-- User Config "t_aws-fresh_web_a"
--

ALTER ROLE "t_aws-fresh_web_a" SET role TO 't_aws-fresh';
ALTER ROLE "t_aws-fresh_web_a" SET statement_timeout TO '300000';
ALTER ROLE "t_aws-fresh_web_a" SET idle_in_transaction_session_timeout TO '300000';

--
-- User Config "t_aws-overlap_web_a"
--

ALTER ROLE "t_aws-overlap_web_a" SET role TO 't_aws-overlap';
ALTER ROLE "t_aws-overlap_web_a" SET statement_timeout TO '30000';
ALTER ROLE "t_aws-overlap_web_a" SET idle_in_transaction_session_timeout TO '60000';

--
-- User Config "t_aws-overlap_web_b"
--

ALTER ROLE "t_aws-overlap_web_b" SET role TO 't_aws-overlap';
ALTER ROLE "t_aws-overlap_web_b" SET statement_timeout TO '30000';
ALTER ROLE "t_aws-overlap_web_b" SET idle_in_transaction_session_timeout TO '60000';

--
-- User Config "t_aws-retained_old_a"
--

ALTER ROLE "t_aws-retained_old_a" SET role TO 't_aws-retained_rw';
ALTER ROLE "t_aws-retained_old_a" SET statement_timeout TO '30000';
ALTER ROLE "t_aws-retained_old_a" SET idle_in_transaction_session_timeout TO '60000';

--
-- User Config "t_aws-retained_web_a"
--

ALTER ROLE "t_aws-retained_web_a" SET role TO 't_aws-retained';
ALTER ROLE "t_aws-retained_web_a" SET statement_timeout TO '30000';
ALTER ROLE "t_aws-retained_web_a" SET idle_in_transaction_session_timeout TO '60000';

--
-- User Config "t_aws-rotated_web_a"
--

ALTER ROLE "t_aws-rotated_web_a" SET role TO 't_aws-rotated';
ALTER ROLE "t_aws-rotated_web_a" SET statement_timeout TO '30000';
ALTER ROLE "t_aws-rotated_web_a" SET idle_in_transaction_session_timeout TO '60000';

--
-- User Config "t_aws-rotated_web_b"
--

ALTER ROLE "t_aws-rotated_web_b" SET role TO 't_aws-rotated';
ALTER ROLE "t_aws-rotated_web_b" SET statement_timeout TO '30000';
ALTER ROLE "t_aws-rotated_web_b" SET idle_in_transaction_session_timeout TO '60000';

--
-- User Config "t_local-fresh_reports_a"
--

ALTER ROLE "t_local-fresh_reports_a" SET role TO 't_local-fresh_ro';
ALTER ROLE "t_local-fresh_reports_a" SET statement_timeout TO '300000';
ALTER ROLE "t_local-fresh_reports_a" SET idle_in_transaction_session_timeout TO '300000';

--
-- User Config "t_local-fresh_web_a"
--

ALTER ROLE "t_local-fresh_web_a" SET role TO 't_local-fresh';
ALTER ROLE "t_local-fresh_web_a" SET statement_timeout TO '300000';
ALTER ROLE "t_local-fresh_web_a" SET idle_in_transaction_session_timeout TO '300000';

--
-- User Config "t_local-overlap_web_a"
--

ALTER ROLE "t_local-overlap_web_a" SET role TO 't_local-overlap';
ALTER ROLE "t_local-overlap_web_a" SET statement_timeout TO '30000';
ALTER ROLE "t_local-overlap_web_a" SET idle_in_transaction_session_timeout TO '60000';

--
-- User Config "t_local-overlap_web_b"
--

ALTER ROLE "t_local-overlap_web_b" SET role TO 't_local-overlap';
ALTER ROLE "t_local-overlap_web_b" SET statement_timeout TO '30000';
ALTER ROLE "t_local-overlap_web_b" SET idle_in_transaction_session_timeout TO '60000';

--
-- User Config "t_local-retained_old_a"
--

ALTER ROLE "t_local-retained_old_a" SET role TO 't_local-retained_rw';
ALTER ROLE "t_local-retained_old_a" SET statement_timeout TO '30000';
ALTER ROLE "t_local-retained_old_a" SET idle_in_transaction_session_timeout TO '60000';

--
-- User Config "t_local-retained_web_a"
--

ALTER ROLE "t_local-retained_web_a" SET role TO 't_local-retained';
ALTER ROLE "t_local-retained_web_a" SET statement_timeout TO '30000';
ALTER ROLE "t_local-retained_web_a" SET idle_in_transaction_session_timeout TO '60000';

--
-- User Config "t_local-rotated_web_a"
--

ALTER ROLE "t_local-rotated_web_a" SET role TO 't_local-rotated';
ALTER ROLE "t_local-rotated_web_a" SET statement_timeout TO '30000';
ALTER ROLE "t_local-rotated_web_a" SET idle_in_transaction_session_timeout TO '60000';

--
-- User Config "t_local-rotated_web_b"
--

ALTER ROLE "t_local-rotated_web_b" SET role TO 't_local-rotated';
ALTER ROLE "t_local-rotated_web_b" SET statement_timeout TO '30000';
ALTER ROLE "t_local-rotated_web_b" SET idle_in_transaction_session_timeout TO '60000';

--
-- Role memberships
--

GRANT "t_aws-fresh" TO admin WITH ADMIN OPTION GRANTED BY admin;
GRANT "t_aws-fresh" TO "t_aws-fresh_web_a" GRANTED BY admin;
GRANT "t_aws-fresh_reports_a" TO admin WITH ADMIN OPTION GRANTED BY admin;
GRANT "t_aws-fresh_ro" TO admin WITH ADMIN OPTION GRANTED BY admin;
GRANT "t_aws-fresh_ro" TO "t_aws-fresh_reports_a" GRANTED BY admin;
GRANT "t_aws-fresh_rw" TO admin WITH ADMIN OPTION GRANTED BY admin;
GRANT "t_aws-fresh_web_a" TO admin WITH ADMIN OPTION GRANTED BY admin;
GRANT "t_aws-overlap" TO admin WITH ADMIN OPTION GRANTED BY admin;
GRANT "t_aws-overlap" TO "t_aws-overlap_web_a" GRANTED BY admin;
GRANT "t_aws-overlap" TO "t_aws-overlap_web_b" GRANTED BY admin;
GRANT "t_aws-overlap_ro" TO admin WITH ADMIN OPTION GRANTED BY admin;
GRANT "t_aws-overlap_rw" TO admin WITH ADMIN OPTION GRANTED BY admin;
GRANT "t_aws-overlap_web_a" TO admin WITH ADMIN OPTION GRANTED BY admin;
GRANT "t_aws-overlap_web_b" TO admin WITH ADMIN OPTION GRANTED BY admin;
GRANT "t_aws-retained" TO admin WITH ADMIN OPTION GRANTED BY admin;
GRANT "t_aws-retained" TO "t_aws-retained_web_a" GRANTED BY admin;
GRANT "t_aws-retained_old_a" TO admin WITH ADMIN OPTION GRANTED BY admin;
GRANT "t_aws-retained_ro" TO admin WITH ADMIN OPTION GRANTED BY admin;
GRANT "t_aws-retained_rw" TO admin WITH ADMIN OPTION GRANTED BY admin;
GRANT "t_aws-retained_rw" TO "t_aws-retained_old_a" GRANTED BY admin;
GRANT "t_aws-retained_web_a" TO admin WITH ADMIN OPTION GRANTED BY admin;
GRANT "t_aws-rotated" TO admin WITH ADMIN OPTION GRANTED BY admin;
GRANT "t_aws-rotated" TO "t_aws-rotated_web_a" GRANTED BY admin;
GRANT "t_aws-rotated" TO "t_aws-rotated_web_b" GRANTED BY admin;
GRANT "t_aws-rotated_ro" TO admin WITH ADMIN OPTION GRANTED BY admin;
GRANT "t_aws-rotated_rw" TO admin WITH ADMIN OPTION GRANTED BY admin;
GRANT "t_aws-rotated_web_a" TO admin WITH ADMIN OPTION GRANTED BY admin;
GRANT "t_aws-rotated_web_b" TO admin WITH ADMIN OPTION GRANTED BY admin;
GRANT "t_local-fresh" TO admin WITH ADMIN OPTION GRANTED BY admin;
GRANT "t_local-fresh" TO "t_local-fresh_web_a" GRANTED BY admin;
GRANT "t_local-fresh_reports_a" TO admin WITH ADMIN OPTION GRANTED BY admin;
GRANT "t_local-fresh_ro" TO admin WITH ADMIN OPTION GRANTED BY admin;
GRANT "t_local-fresh_ro" TO "t_local-fresh_reports_a" GRANTED BY admin;
GRANT "t_local-fresh_rw" TO admin WITH ADMIN OPTION GRANTED BY admin;
GRANT "t_local-fresh_web_a" TO admin WITH ADMIN OPTION GRANTED BY admin;
GRANT "t_local-overlap" TO admin WITH ADMIN OPTION GRANTED BY admin;
GRANT "t_local-overlap" TO "t_local-overlap_web_a" GRANTED BY admin;
GRANT "t_local-overlap" TO "t_local-overlap_web_b" GRANTED BY admin;
GRANT "t_local-overlap_ro" TO admin WITH ADMIN OPTION GRANTED BY admin;
GRANT "t_local-overlap_rw" TO admin WITH ADMIN OPTION GRANTED BY admin;
GRANT "t_local-overlap_web_a" TO admin WITH ADMIN OPTION GRANTED BY admin;
GRANT "t_local-overlap_web_b" TO admin WITH ADMIN OPTION GRANTED BY admin;
GRANT "t_local-retained" TO admin WITH ADMIN OPTION GRANTED BY admin;
GRANT "t_local-retained" TO "t_local-retained_web_a" GRANTED BY admin;
GRANT "t_local-retained_old_a" TO admin WITH ADMIN OPTION GRANTED BY admin;
GRANT "t_local-retained_ro" TO admin WITH ADMIN OPTION GRANTED BY admin;
GRANT "t_local-retained_rw" TO admin WITH ADMIN OPTION GRANTED BY admin;
GRANT "t_local-retained_rw" TO "t_local-retained_old_a" GRANTED BY admin;
GRANT "t_local-retained_web_a" TO admin WITH ADMIN OPTION GRANTED BY admin;
GRANT "t_local-rotated" TO admin WITH ADMIN OPTION GRANTED BY admin;
GRANT "t_local-rotated" TO "t_local-rotated_web_a" GRANTED BY admin;
GRANT "t_local-rotated" TO "t_local-rotated_web_b" GRANTED BY admin;
GRANT "t_local-rotated_ro" TO admin WITH ADMIN OPTION GRANTED BY admin;
GRANT "t_local-rotated_rw" TO admin WITH ADMIN OPTION GRANTED BY admin;
GRANT "t_local-rotated_web_a" TO admin WITH ADMIN OPTION GRANTED BY admin;
GRANT "t_local-rotated_web_b" TO admin WITH ADMIN OPTION GRANTED BY admin;

--
-- PostgreSQL database cluster dump complete
--

--
-- PostgreSQL database dump
--

-- Dumped from database version 15.18 (Debian 15.18-0+deb12u1)
-- Dumped by pg_dump version 15.18 (Debian 15.18-0+deb12u1)

SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;

--
-- Name: t_aws-fresh; Type: DATABASE; Schema: -; Owner: t_aws-fresh
--

CREATE DATABASE "t_aws-fresh" WITH TEMPLATE = template0 ENCODING = 'UTF8' LOCALE_PROVIDER = libc LOCALE = 'C';

ALTER DATABASE "t_aws-fresh" OWNER TO "t_aws-fresh";

\encoding SQL_ASCII
\connect -reuse-previous=on "dbname='t_aws-fresh'"

SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;

SET default_tablespace = '';

SET default_table_access_method = heap;

--
-- Name: greeting; Type: TABLE; Schema: public; Owner: t_aws-fresh
--

CREATE TABLE public.greeting (
    said text
);

ALTER TABLE public.greeting OWNER TO "t_aws-fresh";

--
-- Data for Name: greeting; Type: TABLE DATA; Schema: public; Owner: t_aws-fresh
--

INSERT INTO public.greeting VALUES ('hello');

--
-- Name: DATABASE "t_aws-fresh"; Type: ACL; Schema: -; Owner: t_aws-fresh
--

REVOKE CONNECT,TEMPORARY ON DATABASE "t_aws-fresh" FROM PUBLIC;
GRANT CONNECT,TEMPORARY ON DATABASE "t_aws-fresh" TO "t_aws-fresh_rw";
GRANT CONNECT ON DATABASE "t_aws-fresh" TO "t_aws-fresh_ro";

--
-- Name: SCHEMA public; Type: ACL; Schema: -; Owner: pg_database_owner
--

GRANT USAGE ON SCHEMA public TO "t_aws-fresh_rw";
GRANT USAGE ON SCHEMA public TO "t_aws-fresh_ro";

--
-- Name: TABLE greeting; Type: ACL; Schema: public; Owner: t_aws-fresh
--

GRANT SELECT ON TABLE public.greeting TO "t_aws-fresh_ro";
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.greeting TO "t_aws-fresh_rw";

--
-- Name: DEFAULT PRIVILEGES FOR SEQUENCES; Type: DEFAULT ACL; Schema: -; Owner: t_aws-fresh
--

ALTER DEFAULT PRIVILEGES FOR ROLE "t_aws-fresh" GRANT SELECT ON SEQUENCES  TO "t_aws-fresh_ro";
ALTER DEFAULT PRIVILEGES FOR ROLE "t_aws-fresh" GRANT ALL ON SEQUENCES  TO "t_aws-fresh_rw";

--
-- Name: DEFAULT PRIVILEGES FOR SCHEMAS; Type: DEFAULT ACL; Schema: -; Owner: t_aws-fresh
--

ALTER DEFAULT PRIVILEGES FOR ROLE "t_aws-fresh" GRANT USAGE ON SCHEMAS  TO "t_aws-fresh_ro";
ALTER DEFAULT PRIVILEGES FOR ROLE "t_aws-fresh" GRANT USAGE ON SCHEMAS  TO "t_aws-fresh_rw";

--
-- Name: DEFAULT PRIVILEGES FOR TABLES; Type: DEFAULT ACL; Schema: -; Owner: t_aws-fresh
--

ALTER DEFAULT PRIVILEGES FOR ROLE "t_aws-fresh" GRANT SELECT ON TABLES  TO "t_aws-fresh_ro";
ALTER DEFAULT PRIVILEGES FOR ROLE "t_aws-fresh" GRANT SELECT,INSERT,DELETE,UPDATE ON TABLES  TO "t_aws-fresh_rw";

--
-- PostgreSQL database dump complete
--

--
-- PostgreSQL database dump
--

-- Dumped from database version 15.18 (Debian 15.18-0+deb12u1)
-- Dumped by pg_dump version 15.18 (Debian 15.18-0+deb12u1)

SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;

--
-- Name: t_aws-overlap; Type: DATABASE; Schema: -; Owner: t_aws-overlap
--

CREATE DATABASE "t_aws-overlap" WITH TEMPLATE = template0 ENCODING = 'UTF8' LOCALE_PROVIDER = libc LOCALE = 'C';

ALTER DATABASE "t_aws-overlap" OWNER TO "t_aws-overlap";

\encoding SQL_ASCII
\connect -reuse-previous=on "dbname='t_aws-overlap'"

SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;

SET default_tablespace = '';

SET default_table_access_method = heap;

--
-- Name: greeting; Type: TABLE; Schema: public; Owner: t_aws-overlap
--

CREATE TABLE public.greeting (
    said text
);

ALTER TABLE public.greeting OWNER TO "t_aws-overlap";

--
-- Data for Name: greeting; Type: TABLE DATA; Schema: public; Owner: t_aws-overlap
--

INSERT INTO public.greeting VALUES ('hello');

--
-- Name: DATABASE "t_aws-overlap"; Type: ACL; Schema: -; Owner: t_aws-overlap
--

REVOKE CONNECT,TEMPORARY ON DATABASE "t_aws-overlap" FROM PUBLIC;
GRANT CONNECT,TEMPORARY ON DATABASE "t_aws-overlap" TO "t_aws-overlap_rw";
GRANT CONNECT ON DATABASE "t_aws-overlap" TO "t_aws-overlap_ro";

--
-- Name: SCHEMA public; Type: ACL; Schema: -; Owner: pg_database_owner
--

GRANT USAGE ON SCHEMA public TO "t_aws-overlap_rw";
GRANT USAGE ON SCHEMA public TO "t_aws-overlap_ro";

--
-- Name: TABLE greeting; Type: ACL; Schema: public; Owner: t_aws-overlap
--

GRANT SELECT ON TABLE public.greeting TO "t_aws-overlap_ro";
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.greeting TO "t_aws-overlap_rw";

--
-- Name: DEFAULT PRIVILEGES FOR SEQUENCES; Type: DEFAULT ACL; Schema: -; Owner: t_aws-overlap
--

ALTER DEFAULT PRIVILEGES FOR ROLE "t_aws-overlap" GRANT SELECT ON SEQUENCES  TO "t_aws-overlap_ro";
ALTER DEFAULT PRIVILEGES FOR ROLE "t_aws-overlap" GRANT ALL ON SEQUENCES  TO "t_aws-overlap_rw";

--
-- Name: DEFAULT PRIVILEGES FOR SCHEMAS; Type: DEFAULT ACL; Schema: -; Owner: t_aws-overlap
--

ALTER DEFAULT PRIVILEGES FOR ROLE "t_aws-overlap" GRANT USAGE ON SCHEMAS  TO "t_aws-overlap_ro";
ALTER DEFAULT PRIVILEGES FOR ROLE "t_aws-overlap" GRANT USAGE ON SCHEMAS  TO "t_aws-overlap_rw";

--
-- Name: DEFAULT PRIVILEGES FOR TABLES; Type: DEFAULT ACL; Schema: -; Owner: t_aws-overlap
--

ALTER DEFAULT PRIVILEGES FOR ROLE "t_aws-overlap" GRANT SELECT ON TABLES  TO "t_aws-overlap_ro";
ALTER DEFAULT PRIVILEGES FOR ROLE "t_aws-overlap" GRANT SELECT,INSERT,DELETE,UPDATE ON TABLES  TO "t_aws-overlap_rw";

--
-- PostgreSQL database dump complete
--

--
-- PostgreSQL database dump
--

-- Dumped from database version 15.18 (Debian 15.18-0+deb12u1)
-- Dumped by pg_dump version 15.18 (Debian 15.18-0+deb12u1)

SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;

--
-- Name: t_aws-retained; Type: DATABASE; Schema: -; Owner: t_aws-retained
--

CREATE DATABASE "t_aws-retained" WITH TEMPLATE = template0 ENCODING = 'UTF8' LOCALE_PROVIDER = libc LOCALE = 'C';

ALTER DATABASE "t_aws-retained" OWNER TO "t_aws-retained";

\encoding SQL_ASCII
\connect -reuse-previous=on "dbname='t_aws-retained'"

SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;

SET default_tablespace = '';

SET default_table_access_method = heap;

--
-- Name: greeting; Type: TABLE; Schema: public; Owner: t_aws-retained
--

CREATE TABLE public.greeting (
    said text
);

ALTER TABLE public.greeting OWNER TO "t_aws-retained";

--
-- Data for Name: greeting; Type: TABLE DATA; Schema: public; Owner: t_aws-retained
--

INSERT INTO public.greeting VALUES ('hello');

--
-- Name: DATABASE "t_aws-retained"; Type: ACL; Schema: -; Owner: t_aws-retained
--

REVOKE CONNECT,TEMPORARY ON DATABASE "t_aws-retained" FROM PUBLIC;
GRANT CONNECT,TEMPORARY ON DATABASE "t_aws-retained" TO "t_aws-retained_rw";
GRANT CONNECT ON DATABASE "t_aws-retained" TO "t_aws-retained_ro";

--
-- Name: SCHEMA public; Type: ACL; Schema: -; Owner: pg_database_owner
--

GRANT USAGE ON SCHEMA public TO "t_aws-retained_rw";
GRANT USAGE ON SCHEMA public TO "t_aws-retained_ro";

--
-- Name: TABLE greeting; Type: ACL; Schema: public; Owner: t_aws-retained
--

GRANT SELECT ON TABLE public.greeting TO "t_aws-retained_ro";
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.greeting TO "t_aws-retained_rw";

--
-- Name: DEFAULT PRIVILEGES FOR SEQUENCES; Type: DEFAULT ACL; Schema: -; Owner: t_aws-retained
--

ALTER DEFAULT PRIVILEGES FOR ROLE "t_aws-retained" GRANT SELECT ON SEQUENCES  TO "t_aws-retained_ro";
ALTER DEFAULT PRIVILEGES FOR ROLE "t_aws-retained" GRANT ALL ON SEQUENCES  TO "t_aws-retained_rw";

--
-- Name: DEFAULT PRIVILEGES FOR SCHEMAS; Type: DEFAULT ACL; Schema: -; Owner: t_aws-retained
--

ALTER DEFAULT PRIVILEGES FOR ROLE "t_aws-retained" GRANT USAGE ON SCHEMAS  TO "t_aws-retained_ro";
ALTER DEFAULT PRIVILEGES FOR ROLE "t_aws-retained" GRANT USAGE ON SCHEMAS  TO "t_aws-retained_rw";

--
-- Name: DEFAULT PRIVILEGES FOR TABLES; Type: DEFAULT ACL; Schema: -; Owner: t_aws-retained
--

ALTER DEFAULT PRIVILEGES FOR ROLE "t_aws-retained" GRANT SELECT ON TABLES  TO "t_aws-retained_ro";
ALTER DEFAULT PRIVILEGES FOR ROLE "t_aws-retained" GRANT SELECT,INSERT,DELETE,UPDATE ON TABLES  TO "t_aws-retained_rw";

--
-- PostgreSQL database dump complete
--

--
-- PostgreSQL database dump
--

-- Dumped from database version 15.18 (Debian 15.18-0+deb12u1)
-- Dumped by pg_dump version 15.18 (Debian 15.18-0+deb12u1)

SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;

--
-- Name: t_aws-rotated; Type: DATABASE; Schema: -; Owner: t_aws-rotated
--

CREATE DATABASE "t_aws-rotated" WITH TEMPLATE = template0 ENCODING = 'UTF8' LOCALE_PROVIDER = libc LOCALE = 'C';

ALTER DATABASE "t_aws-rotated" OWNER TO "t_aws-rotated";

\encoding SQL_ASCII
\connect -reuse-previous=on "dbname='t_aws-rotated'"

SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;

SET default_tablespace = '';

SET default_table_access_method = heap;

--
-- Name: greeting; Type: TABLE; Schema: public; Owner: t_aws-rotated
--

CREATE TABLE public.greeting (
    said text
);

ALTER TABLE public.greeting OWNER TO "t_aws-rotated";

--
-- Data for Name: greeting; Type: TABLE DATA; Schema: public; Owner: t_aws-rotated
--

INSERT INTO public.greeting VALUES ('hello');

--
-- Name: DATABASE "t_aws-rotated"; Type: ACL; Schema: -; Owner: t_aws-rotated
--

REVOKE CONNECT,TEMPORARY ON DATABASE "t_aws-rotated" FROM PUBLIC;
GRANT CONNECT,TEMPORARY ON DATABASE "t_aws-rotated" TO "t_aws-rotated_rw";
GRANT CONNECT ON DATABASE "t_aws-rotated" TO "t_aws-rotated_ro";

--
-- Name: SCHEMA public; Type: ACL; Schema: -; Owner: pg_database_owner
--

GRANT USAGE ON SCHEMA public TO "t_aws-rotated_rw";
GRANT USAGE ON SCHEMA public TO "t_aws-rotated_ro";

--
-- Name: TABLE greeting; Type: ACL; Schema: public; Owner: t_aws-rotated
--

GRANT SELECT ON TABLE public.greeting TO "t_aws-rotated_ro";
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.greeting TO "t_aws-rotated_rw";

--
-- Name: DEFAULT PRIVILEGES FOR SEQUENCES; Type: DEFAULT ACL; Schema: -; Owner: t_aws-rotated
--

ALTER DEFAULT PRIVILEGES FOR ROLE "t_aws-rotated" GRANT SELECT ON SEQUENCES  TO "t_aws-rotated_ro";
ALTER DEFAULT PRIVILEGES FOR ROLE "t_aws-rotated" GRANT ALL ON SEQUENCES  TO "t_aws-rotated_rw";

--
-- Name: DEFAULT PRIVILEGES FOR SCHEMAS; Type: DEFAULT ACL; Schema: -; Owner: t_aws-rotated
--

ALTER DEFAULT PRIVILEGES FOR ROLE "t_aws-rotated" GRANT USAGE ON SCHEMAS  TO "t_aws-rotated_ro";
ALTER DEFAULT PRIVILEGES FOR ROLE "t_aws-rotated" GRANT USAGE ON SCHEMAS  TO "t_aws-rotated_rw";

--
-- Name: DEFAULT PRIVILEGES FOR TABLES; Type: DEFAULT ACL; Schema: -; Owner: t_aws-rotated
--

ALTER DEFAULT PRIVILEGES FOR ROLE "t_aws-rotated" GRANT SELECT ON TABLES  TO "t_aws-rotated_ro";
ALTER DEFAULT PRIVILEGES FOR ROLE "t_aws-rotated" GRANT SELECT,INSERT,DELETE,UPDATE ON TABLES  TO "t_aws-rotated_rw";

--
-- PostgreSQL database dump complete
--

--
-- PostgreSQL database dump
--

-- Dumped from database version 15.18 (Debian 15.18-0+deb12u1)
-- Dumped by pg_dump version 15.18 (Debian 15.18-0+deb12u1)

SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;

--
-- Name: t_local-fresh; Type: DATABASE; Schema: -; Owner: t_local-fresh
--

CREATE DATABASE "t_local-fresh" WITH TEMPLATE = template0 ENCODING = 'UTF8' LOCALE_PROVIDER = libc LOCALE = 'C';

ALTER DATABASE "t_local-fresh" OWNER TO "t_local-fresh";

\encoding SQL_ASCII
\connect -reuse-previous=on "dbname='t_local-fresh'"

SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;

SET default_tablespace = '';

SET default_table_access_method = heap;

--
-- Name: greeting; Type: TABLE; Schema: public; Owner: t_local-fresh
--

CREATE TABLE public.greeting (
    said text
);

ALTER TABLE public.greeting OWNER TO "t_local-fresh";

--
-- Data for Name: greeting; Type: TABLE DATA; Schema: public; Owner: t_local-fresh
--

INSERT INTO public.greeting VALUES ('hello');

--
-- Name: DATABASE "t_local-fresh"; Type: ACL; Schema: -; Owner: t_local-fresh
--

REVOKE CONNECT,TEMPORARY ON DATABASE "t_local-fresh" FROM PUBLIC;
GRANT CONNECT,TEMPORARY ON DATABASE "t_local-fresh" TO "t_local-fresh_rw";
GRANT CONNECT ON DATABASE "t_local-fresh" TO "t_local-fresh_ro";

--
-- Name: SCHEMA public; Type: ACL; Schema: -; Owner: pg_database_owner
--

GRANT USAGE ON SCHEMA public TO "t_local-fresh_rw";
GRANT USAGE ON SCHEMA public TO "t_local-fresh_ro";

--
-- Name: TABLE greeting; Type: ACL; Schema: public; Owner: t_local-fresh
--

GRANT SELECT ON TABLE public.greeting TO "t_local-fresh_ro";
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.greeting TO "t_local-fresh_rw";

--
-- Name: DEFAULT PRIVILEGES FOR SEQUENCES; Type: DEFAULT ACL; Schema: -; Owner: t_local-fresh
--

ALTER DEFAULT PRIVILEGES FOR ROLE "t_local-fresh" GRANT SELECT ON SEQUENCES  TO "t_local-fresh_ro";
ALTER DEFAULT PRIVILEGES FOR ROLE "t_local-fresh" GRANT ALL ON SEQUENCES  TO "t_local-fresh_rw";

--
-- Name: DEFAULT PRIVILEGES FOR SCHEMAS; Type: DEFAULT ACL; Schema: -; Owner: t_local-fresh
--

ALTER DEFAULT PRIVILEGES FOR ROLE "t_local-fresh" GRANT USAGE ON SCHEMAS  TO "t_local-fresh_ro";
ALTER DEFAULT PRIVILEGES FOR ROLE "t_local-fresh" GRANT USAGE ON SCHEMAS  TO "t_local-fresh_rw";

--
-- Name: DEFAULT PRIVILEGES FOR TABLES; Type: DEFAULT ACL; Schema: -; Owner: t_local-fresh
--

ALTER DEFAULT PRIVILEGES FOR ROLE "t_local-fresh" GRANT SELECT ON TABLES  TO "t_local-fresh_ro";
ALTER DEFAULT PRIVILEGES FOR ROLE "t_local-fresh" GRANT SELECT,INSERT,DELETE,UPDATE ON TABLES  TO "t_local-fresh_rw";

--
-- PostgreSQL database dump complete
--

--
-- PostgreSQL database dump
--

-- Dumped from database version 15.18 (Debian 15.18-0+deb12u1)
-- Dumped by pg_dump version 15.18 (Debian 15.18-0+deb12u1)

SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;

--
-- Name: t_local-overlap; Type: DATABASE; Schema: -; Owner: t_local-overlap
--

CREATE DATABASE "t_local-overlap" WITH TEMPLATE = template0 ENCODING = 'UTF8' LOCALE_PROVIDER = libc LOCALE = 'C';

ALTER DATABASE "t_local-overlap" OWNER TO "t_local-overlap";

\encoding SQL_ASCII
\connect -reuse-previous=on "dbname='t_local-overlap'"

SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;

SET default_tablespace = '';

SET default_table_access_method = heap;

--
-- Name: greeting; Type: TABLE; Schema: public; Owner: t_local-overlap
--

CREATE TABLE public.greeting (
    said text
);

ALTER TABLE public.greeting OWNER TO "t_local-overlap";

--
-- Data for Name: greeting; Type: TABLE DATA; Schema: public; Owner: t_local-overlap
--

INSERT INTO public.greeting VALUES ('hello');

--
-- Name: DATABASE "t_local-overlap"; Type: ACL; Schema: -; Owner: t_local-overlap
--

REVOKE CONNECT,TEMPORARY ON DATABASE "t_local-overlap" FROM PUBLIC;
GRANT CONNECT,TEMPORARY ON DATABASE "t_local-overlap" TO "t_local-overlap_rw";
GRANT CONNECT ON DATABASE "t_local-overlap" TO "t_local-overlap_ro";

--
-- Name: SCHEMA public; Type: ACL; Schema: -; Owner: pg_database_owner
--

GRANT USAGE ON SCHEMA public TO "t_local-overlap_rw";
GRANT USAGE ON SCHEMA public TO "t_local-overlap_ro";

--
-- Name: TABLE greeting; Type: ACL; Schema: public; Owner: t_local-overlap
--

GRANT SELECT ON TABLE public.greeting TO "t_local-overlap_ro";
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.greeting TO "t_local-overlap_rw";

--
-- Name: DEFAULT PRIVILEGES FOR SEQUENCES; Type: DEFAULT ACL; Schema: -; Owner: t_local-overlap
--

ALTER DEFAULT PRIVILEGES FOR ROLE "t_local-overlap" GRANT SELECT ON SEQUENCES  TO "t_local-overlap_ro";
ALTER DEFAULT PRIVILEGES FOR ROLE "t_local-overlap" GRANT ALL ON SEQUENCES  TO "t_local-overlap_rw";

--
-- Name: DEFAULT PRIVILEGES FOR SCHEMAS; Type: DEFAULT ACL; Schema: -; Owner: t_local-overlap
--

ALTER DEFAULT PRIVILEGES FOR ROLE "t_local-overlap" GRANT USAGE ON SCHEMAS  TO "t_local-overlap_ro";
ALTER DEFAULT PRIVILEGES FOR ROLE "t_local-overlap" GRANT USAGE ON SCHEMAS  TO "t_local-overlap_rw";

--
-- Name: DEFAULT PRIVILEGES FOR TABLES; Type: DEFAULT ACL; Schema: -; Owner: t_local-overlap
--

ALTER DEFAULT PRIVILEGES FOR ROLE "t_local-overlap" GRANT SELECT ON TABLES  TO "t_local-overlap_ro";
ALTER DEFAULT PRIVILEGES FOR ROLE "t_local-overlap" GRANT SELECT,INSERT,DELETE,UPDATE ON TABLES  TO "t_local-overlap_rw";

--
-- PostgreSQL database dump complete
--

--
-- PostgreSQL database dump
--

-- Dumped from database version 15.18 (Debian 15.18-0+deb12u1)
-- Dumped by pg_dump version 15.18 (Debian 15.18-0+deb12u1)

SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;

--
-- Name: t_local-retained; Type: DATABASE; Schema: -; Owner: t_local-retained
--

CREATE DATABASE "t_local-retained" WITH TEMPLATE = template0 ENCODING = 'UTF8' LOCALE_PROVIDER = libc LOCALE = 'C';

ALTER DATABASE "t_local-retained" OWNER TO "t_local-retained";

\encoding SQL_ASCII
\connect -reuse-previous=on "dbname='t_local-retained'"

SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;

SET default_tablespace = '';

SET default_table_access_method = heap;

--
-- Name: greeting; Type: TABLE; Schema: public; Owner: t_local-retained
--

CREATE TABLE public.greeting (
    said text
);

ALTER TABLE public.greeting OWNER TO "t_local-retained";

--
-- Data for Name: greeting; Type: TABLE DATA; Schema: public; Owner: t_local-retained
--

INSERT INTO public.greeting VALUES ('hello');

--
-- Name: DATABASE "t_local-retained"; Type: ACL; Schema: -; Owner: t_local-retained
--

REVOKE CONNECT,TEMPORARY ON DATABASE "t_local-retained" FROM PUBLIC;
GRANT CONNECT,TEMPORARY ON DATABASE "t_local-retained" TO "t_local-retained_rw";
GRANT CONNECT ON DATABASE "t_local-retained" TO "t_local-retained_ro";

--
-- Name: SCHEMA public; Type: ACL; Schema: -; Owner: pg_database_owner
--

GRANT USAGE ON SCHEMA public TO "t_local-retained_rw";
GRANT USAGE ON SCHEMA public TO "t_local-retained_ro";

--
-- Name: TABLE greeting; Type: ACL; Schema: public; Owner: t_local-retained
--

GRANT SELECT ON TABLE public.greeting TO "t_local-retained_ro";
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.greeting TO "t_local-retained_rw";

--
-- Name: DEFAULT PRIVILEGES FOR SEQUENCES; Type: DEFAULT ACL; Schema: -; Owner: t_local-retained
--

ALTER DEFAULT PRIVILEGES FOR ROLE "t_local-retained" GRANT SELECT ON SEQUENCES  TO "t_local-retained_ro";
ALTER DEFAULT PRIVILEGES FOR ROLE "t_local-retained" GRANT ALL ON SEQUENCES  TO "t_local-retained_rw";

--
-- Name: DEFAULT PRIVILEGES FOR SCHEMAS; Type: DEFAULT ACL; Schema: -; Owner: t_local-retained
--

ALTER DEFAULT PRIVILEGES FOR ROLE "t_local-retained" GRANT USAGE ON SCHEMAS  TO "t_local-retained_ro";
ALTER DEFAULT PRIVILEGES FOR ROLE "t_local-retained" GRANT USAGE ON SCHEMAS  TO "t_local-retained_rw";

--
-- Name: DEFAULT PRIVILEGES FOR TABLES; Type: DEFAULT ACL; Schema: -; Owner: t_local-retained
--

ALTER DEFAULT PRIVILEGES FOR ROLE "t_local-retained" GRANT SELECT ON TABLES  TO "t_local-retained_ro";
ALTER DEFAULT PRIVILEGES FOR ROLE "t_local-retained" GRANT SELECT,INSERT,DELETE,UPDATE ON TABLES  TO "t_local-retained_rw";

--
-- PostgreSQL database dump complete
--

--
-- PostgreSQL database dump
--

-- Dumped from database version 15.18 (Debian 15.18-0+deb12u1)
-- Dumped by pg_dump version 15.18 (Debian 15.18-0+deb12u1)

SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;

--
-- Name: t_local-rotated; Type: DATABASE; Schema: -; Owner: t_local-rotated
--

CREATE DATABASE "t_local-rotated" WITH TEMPLATE = template0 ENCODING = 'UTF8' LOCALE_PROVIDER = libc LOCALE = 'C';

ALTER DATABASE "t_local-rotated" OWNER TO "t_local-rotated";

\encoding SQL_ASCII
\connect -reuse-previous=on "dbname='t_local-rotated'"

SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;

SET default_tablespace = '';

SET default_table_access_method = heap;

--
-- Name: greeting; Type: TABLE; Schema: public; Owner: t_local-rotated
--

CREATE TABLE public.greeting (
    said text
);

ALTER TABLE public.greeting OWNER TO "t_local-rotated";

--
-- Data for Name: greeting; Type: TABLE DATA; Schema: public; Owner: t_local-rotated
--

INSERT INTO public.greeting VALUES ('hello');

--
-- Name: DATABASE "t_local-rotated"; Type: ACL; Schema: -; Owner: t_local-rotated
--

REVOKE CONNECT,TEMPORARY ON DATABASE "t_local-rotated" FROM PUBLIC;
GRANT CONNECT,TEMPORARY ON DATABASE "t_local-rotated" TO "t_local-rotated_rw";
GRANT CONNECT ON DATABASE "t_local-rotated" TO "t_local-rotated_ro";

--
-- Name: SCHEMA public; Type: ACL; Schema: -; Owner: pg_database_owner
--

GRANT USAGE ON SCHEMA public TO "t_local-rotated_rw";
GRANT USAGE ON SCHEMA public TO "t_local-rotated_ro";

--
-- Name: TABLE greeting; Type: ACL; Schema: public; Owner: t_local-rotated
--

GRANT SELECT ON TABLE public.greeting TO "t_local-rotated_ro";
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.greeting TO "t_local-rotated_rw";

--
-- Name: DEFAULT PRIVILEGES FOR SEQUENCES; Type: DEFAULT ACL; Schema: -; Owner: t_local-rotated
--

ALTER DEFAULT PRIVILEGES FOR ROLE "t_local-rotated" GRANT SELECT ON SEQUENCES  TO "t_local-rotated_ro";
ALTER DEFAULT PRIVILEGES FOR ROLE "t_local-rotated" GRANT ALL ON SEQUENCES  TO "t_local-rotated_rw";

--
-- Name: DEFAULT PRIVILEGES FOR SCHEMAS; Type: DEFAULT ACL; Schema: -; Owner: t_local-rotated
--

ALTER DEFAULT PRIVILEGES FOR ROLE "t_local-rotated" GRANT USAGE ON SCHEMAS  TO "t_local-rotated_ro";
ALTER DEFAULT PRIVILEGES FOR ROLE "t_local-rotated" GRANT USAGE ON SCHEMAS  TO "t_local-rotated_rw";

--
-- Name: DEFAULT PRIVILEGES FOR TABLES; Type: DEFAULT ACL; Schema: -; Owner: t_local-rotated
--

ALTER DEFAULT PRIVILEGES FOR ROLE "t_local-rotated" GRANT SELECT ON TABLES  TO "t_local-rotated_ro";
ALTER DEFAULT PRIVILEGES FOR ROLE "t_local-rotated" GRANT SELECT,INSERT,DELETE,UPDATE ON TABLES  TO "t_local-rotated_rw";

--
-- PostgreSQL database dump complete
--

