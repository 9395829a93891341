-- Since version 2: who waits, by arrival (place). seen_at: the last sign of life, by the
-- clock of domain; who gave none for 2.5 s is not in line any more. Where it is there already
-- nothing is asked of the role's rights; a role that grants.sql has made has its rights too.
DO {quote} BEGIN
    IF to_regclass(format('%I.waiters', {schema_text})) IS NULL THEN
        CREATE TABLE {schema}.waiters (
            token_group text COLLATE "C" NOT NULL,
            session     text NOT NULL,
            place       bigint GENERATED ALWAYS AS IDENTITY,
            client      text NOT NULL,
            failback    boolean NOT NULL,
            seen_at     timestamptz NOT NULL,
            domain      text NOT NULL,
            PRIMARY KEY (token_group, session)
        ) WITH (fillfactor = 50);
        IF EXISTS (
            SELECT FROM pg_roles
            WHERE rolname = 'tokenrun' AND has_schema_privilege(oid, {schema_text}, 'USAGE')
        ) THEN
            GRANT SELECT, INSERT, UPDATE, DELETE ON {schema}.waiters TO tokenrun;
        END IF;
        UPDATE {schema}.meta SET value = '2' WHERE name = 'version' AND value = '1';
    END IF;
END {quote};
