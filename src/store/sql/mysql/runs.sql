-- The newest runs of all groups. $1: the number of runs. $2: the client; $3: the outcomes, as in
-- ',failed,lost,'; $4: the earliest start; $5: the end of the time of starts; each may be NULL.
SELECT token_group, fence, session, client, outcome, started_at, ended_at, document
FROM tokenrun_runs
WHERE ($2 IS NULL OR client = $2) AND ($3 IS NULL OR LOCATE(CONCAT(',', outcome, ','), $3) > 0)
    AND ($4 IS NULL OR started_at >= $4) AND ($5 IS NULL OR started_at < $5)
ORDER BY started_at DESC, fence DESC LIMIT $1
