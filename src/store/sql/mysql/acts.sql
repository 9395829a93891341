-- The newest acts of operators. $1: the number of acts; $2: the group, or NULL; $3: the earliest time, or
-- NULL; $4: the time before which they happened, or NULL.
SELECT token_group, at, version, fence, document
FROM tokenrun_acts
WHERE ($2 IS NULL OR token_group = $2) AND ($3 IS NULL OR at >= $3) AND ($4 IS NULL OR at < $4)
ORDER BY at DESC, version LIMIT $1
