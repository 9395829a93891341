-- A role with the rights that tokenrun needs, and no others. Grant it to each role that tokenrun
-- connects as: GRANT tokenrun TO etl.
DO {quote} BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'tokenrun') THEN
        CREATE ROLE tokenrun NOLOGIN;
    END IF;
END {quote};
GRANT USAGE ON SCHEMA {schema} TO tokenrun;
GRANT SELECT ON {schema}.meta, {schema}.token_status TO tokenrun;
GRANT UPDATE (note, note_version, written_by) ON {schema}.meta TO tokenrun;
GRANT SELECT, INSERT, UPDATE ON {schema}.tokens TO tokenrun;
GRANT SELECT, INSERT, UPDATE, DELETE ON {schema}.runs, {schema}.waiters TO tokenrun;
GRANT SELECT, INSERT, UPDATE, DELETE ON {schema}.refusals, {schema}.outputs TO tokenrun;
GRANT SELECT, INSERT, DELETE ON {schema}.acts, {schema}.done_keys TO tokenrun;
GRANT SELECT, INSERT, UPDATE ON {schema}.resources, {schema}.refusal_totals TO tokenrun;
GRANT EXECUTE ON FUNCTION pg_catalog.pg_control_system() TO tokenrun;

-- A role for a job's own transactions. It may call tokenrun_fence, and nothing else. Grant it to each
-- role that jobs connect as: GRANT tokenrun_job TO app.
DO {quote} BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'tokenrun_job') THEN
        CREATE ROLE tokenrun_job NOLOGIN;
    END IF;
END {quote};
GRANT USAGE ON SCHEMA {schema} TO tokenrun_job;
REVOKE EXECUTE ON FUNCTION {schema}.tokenrun_fence(text, bigint) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION {schema}.tokenrun_fence(text, bigint) TO tokenrun_job;
