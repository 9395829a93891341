-- The output of a run. $1: the group; $2: the fence, or NULL for the newest run that has an output.
SELECT token_group, fence, session, written_at, document
FROM tokenrun_outputs
WHERE token_group = $1 AND ($2 IS NULL OR fence = $2)
ORDER BY fence DESC, written_at DESC LIMIT 1
