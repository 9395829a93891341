-- The newest runs of all groups. $1: how many; $2: of this client; $3: that ended so; $4: since then.
SELECT token_group, fence, session, client, outcome, started_at, ended_at, document::text
FROM runs
WHERE ($2 IS NULL OR client = $2) AND ($3 IS NULL OR outcome = $3)
    AND ($4 IS NULL OR started_at >= $4) AND pg_walfile_name('0/1') IS NOT NULL
ORDER BY started_at DESC, fence DESC LIMIT $1
