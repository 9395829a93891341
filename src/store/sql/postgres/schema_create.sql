-- The lock lets one process create the schema at a time: the second finds the tables. The lock ends
-- with the transaction. A role that may not use the schema does not see the objects in it.
SELECT pg_advisory_xact_lock(7239842341119201);
DO {quote} BEGIN
    -- CREATE SCHEMA IF NOT EXISTS needs rights on the database even where the schema exists.
    IF NOT EXISTS (SELECT FROM pg_namespace WHERE nspname = {schema_text}) THEN
        CREATE SCHEMA {schema};
    ELSIF NOT has_schema_privilege({schema_text}, 'USAGE')
        OR NOT has_schema_privilege({schema_text}, 'CREATE') THEN
        RAISE insufficient_privilege USING MESSAGE = 'permission denied for schema ' || {schema_text};
    END IF;
END {quote};
SET LOCAL search_path = {schema}, pg_temp;
