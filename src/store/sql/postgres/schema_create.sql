-- One at a time: who comes second finds it made. The lock goes with the transaction.
SELECT pg_advisory_xact_lock(7239842341119201);
DO {quote} BEGIN
    -- Not IF NOT EXISTS: that asks for rights on the database even where there is nothing to make.
    IF NOT EXISTS (SELECT FROM pg_namespace WHERE nspname = {schema_text}) THEN
        CREATE SCHEMA {schema};
    END IF;
END {quote};
