-- What came after the first tables. Where it is there already nothing is asked of the
-- role's rights. A role that grants.sql has made for the first tables is given the same
-- rights on the others.
DO {quote}
DECLARE
    has_role boolean := EXISTS (
        SELECT FROM pg_roles
        WHERE rolname = 'tokenrun' AND has_schema_privilege(oid, {schema_text}, 'USAGE')
    );
BEGIN
    -- What operators did.
    IF to_regclass(format('%I.events', {schema_text})) IS NULL THEN
        CREATE TABLE {schema}.events (
            token_group text COLLATE "C" NOT NULL,
            at          timestamptz NOT NULL,
            domain      text NOT NULL,
            -- what the act wrote into the row
            version     bigint NOT NULL,
            -- pause, resume, handoff, expect, revoke, release, release_by_force
            act         text NOT NULL,
            client      text,
            until       timestamptz,
            once_key    text,
            fence       bigint NOT NULL,
            act_by      text NOT NULL,
            host        text,
            reason      text,
            PRIMARY KEY (token_group, at, version)
        );
        IF has_role THEN
            GRANT SELECT, INSERT, DELETE ON {schema}.events TO tokenrun;
        END IF;
    END IF;
    -- The keys of --once that are done: at most once each.
    IF to_regclass(format('%I.once', {schema_text})) IS NULL THEN
        CREATE TABLE {schema}.once (
            token_group text COLLATE "C" NOT NULL,
            once_key    text COLLATE "C" NOT NULL,
            done_at     timestamptz NOT NULL,
            fence       bigint NOT NULL,
            session     text NOT NULL,
            client      text NOT NULL,
            PRIMARY KEY (token_group, once_key)
        );
        IF has_role THEN
            GRANT SELECT, INSERT, DELETE ON {schema}.once TO tokenrun;
        END IF;
    END IF;
    -- The highest fence that has used each resource.
    IF to_regclass(format('%I.resources', {schema_text})) IS NULL THEN
        CREATE TABLE {schema}.resources (
            resource    text COLLATE "C" PRIMARY KEY,
            fence       bigint NOT NULL,
            advanced_at timestamptz NOT NULL
        );
        IF has_role THEN
            GRANT SELECT, INSERT, UPDATE ON {schema}.resources TO tokenrun;
        END IF;
    END IF;
END {quote};
