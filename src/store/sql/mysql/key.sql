-- $1: the group; $2: the key.
SELECT token_group, once_key, done_at, fence, document
FROM tokenrun_done_keys WHERE token_group = $1 AND once_key = $2
