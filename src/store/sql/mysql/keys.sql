-- The keys of --once that are done. $1: the group, or NULL.
SELECT token_group, once_key, done_at, fence, document
FROM tokenrun_done_keys WHERE ($1 IS NULL OR token_group = $1)
ORDER BY done_at DESC, once_key
