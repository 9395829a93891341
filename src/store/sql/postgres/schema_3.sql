-- Since version 3: how runs have ended. failures in tokens counts signalled and timed_out as
-- well, losses vanished. A table of its own: to add columns to tokens would wait for every
-- job's transaction that has called tokenrun_fence, and every heartbeat would wait behind it.
DO $do$ BEGIN
    IF to_regclass(format('%I.outcomes', {schema_text})) IS NULL THEN
        CREATE TABLE {schema}.outcomes (
            token_group text COLLATE "C" PRIMARY KEY,
            succeeded   bigint NOT NULL,
            signalled   bigint NOT NULL,
            timed_out   bigint NOT NULL,
            not_started bigint NOT NULL,
            vanished    bigint NOT NULL,
            -- freed by force, by an operator
            forced      bigint NOT NULL
        ) WITH (fillfactor = 50);
        IF EXISTS (
            SELECT FROM pg_roles
            WHERE rolname = 'tokenrun' AND has_schema_privilege(oid, {schema_text}, 'USAGE')
        ) THEN
            GRANT SELECT, INSERT, UPDATE ON {schema}.outcomes TO tokenrun;
        END IF;
        UPDATE {schema}.meta SET value = '3' WHERE name = 'version' AND value IN ('1', '2');
    END IF;
END $do$;
