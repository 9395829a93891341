-- The newest runs. There is no index by time, because each run would have to write it. Fences rise, so
-- the newest runs of a group are at the end of its fences. Each group is found from the one before it.
WITH RECURSIVE groups (name) AS (
    SELECT min(token_group) FROM runs
    UNION ALL
    SELECT (SELECT min(token_group) FROM runs WHERE token_group > name)
    FROM groups WHERE name IS NOT NULL
)
SELECT token_group, fence, session, client, outcome, started_at, ended_at, document
FROM groups JOIN runs ON token_group = name AND (fence, session) IN (
    SELECT newest.fence, newest.session FROM runs AS newest
    WHERE newest.token_group = name
      AND (?2 IS NULL OR newest.client = ?2) AND (?3 IS NULL OR instr(?3, ',' || newest.outcome || ','))
      AND (?4 IS NULL OR newest.started_at >= ?4) AND (?5 IS NULL OR newest.started_at < ?5)
    ORDER BY newest.fence DESC LIMIT ?1
)
ORDER BY started_at DESC, fence DESC LIMIT ?1
