-- $1: the group; $2: the note that was read; $3: the next note. Of two prunings at once, one writes its
-- note. The statement skips a locked row, and its commit waits for no disk and no standby. A lost note
-- only delays a pruning.
WITH found AS MATERIALIZED (
    SELECT token_group, set_config('synchronous_commit', 'off', true)
    FROM tokens
    WHERE token_group = $1 AND pruning_note IS NOT DISTINCT FROM $2
    FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE tokens AS token SET pruning_note = $3
FROM found WHERE token.token_group = found.token_group
RETURNING true
