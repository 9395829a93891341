-- The newest refusals. $1: their number; $2: the group, or NULL; $3: the earliest time of the last refusal of a
-- record, or NULL; $4: the time before which its first happened, or NULL.
SELECT token_group, client, reason, cause, first_at, last_at, count, fence, document
FROM tokenrun_refusals
WHERE ($2 IS NULL OR token_group = $2) AND ($3 IS NULL OR last_at >= $3) AND ($4 IS NULL OR first_at < $4)
ORDER BY last_at DESC, token_group, client, cause LIMIT $1
