-- The output of a run. $1 to $3: group, fence, session; $4: the document.
WITH clock AS MATERIALIZED (
    SELECT clock_timestamp() AS now WHERE pg_walfile_name('0/1') IS NOT NULL
)
INSERT INTO outputs (token_group, fence, session, written_at, document)
SELECT $1, $2, $3, now, $4::jsonb FROM clock
ON CONFLICT (token_group, fence, session) DO UPDATE SET
    written_at = excluded.written_at, document = excluded.document
