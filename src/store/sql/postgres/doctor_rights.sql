-- From the catalogue alone, which every role may read. `missing`: rights that grants.sql would give;
-- `absent`: tables that do not exist.
WITH home AS (SELECT oid FROM pg_namespace WHERE nspname = {schema_text}),
tables AS (
    SELECT needed.name, needed.rights, pg_class.oid, relpersistence
    FROM (VALUES
        ('meta', ARRAY['SELECT', 'UPDATE']),
        ('tokens', ARRAY['SELECT', 'INSERT', 'UPDATE']),
        ('runs', ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']),
        ('waiters', ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']),
        ('refusals', ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']),
        ('outputs', ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']),
        ('acts', ARRAY['SELECT', 'INSERT', 'DELETE']),
        ('done_keys', ARRAY['SELECT', 'INSERT', 'DELETE']),
        ('refusal_totals', ARRAY['SELECT', 'INSERT', 'UPDATE']),
        ('resources', ARRAY['SELECT', 'INSERT', 'UPDATE'])
    ) AS needed (name, rights)
    LEFT JOIN pg_class ON relname = needed.name AND relkind IN ('r', 'p', 'v', 'f')
        AND relnamespace = (SELECT oid FROM home)
)
SELECT
    (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) AS super,
    has_database_privilege(current_database(), 'CREATE') AS may_create,
    EXISTS (SELECT FROM home) AS there,
    coalesce((SELECT has_schema_privilege(oid, 'USAGE') FROM home), false) AS usage,
    coalesce((SELECT has_schema_privilege(oid, 'CREATE') FROM home), false) AS may_add,
    ARRAY(SELECT name FROM tables WHERE oid IS NULL) AS absent,
    ARRAY(
        SELECT wanted || ' on ' || name FROM tables, unnest(rights) AS wanted
        -- Only the note's columns of meta are updated.
        WHERE oid IS NOT NULL AND NOT CASE wanted
            WHEN 'UPDATE' THEN has_any_column_privilege(oid, wanted)
            ELSE has_table_privilege(oid, wanted)
        END
    ) || CASE
        WHEN has_function_privilege('pg_control_system()', 'EXECUTE') THEN '{}'
        ELSE ARRAY['EXECUTE on pg_control_system()']
    END AS missing,
    ARRAY(SELECT name FROM tables WHERE relpersistence <> 'p') AS unlogged,
    ARRAY(SELECT name FROM tables WHERE oid IS NOT NULL AND row_security_active(oid)) AS filtered
