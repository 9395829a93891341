-- The keys of --once that are done. $1: the group, or NULL.
SELECT token_group, once_key, done_at, fence, document::text
FROM done_keys WHERE ($1 IS NULL OR token_group = $1) AND pg_walfile_name('0/1') IS NOT NULL
ORDER BY done_at DESC, once_key
