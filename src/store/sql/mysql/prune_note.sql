-- $1: the group; $2: the note that was read; $3: the next note. Of two prunings at once, one writes its note. A
-- lost note only delays a pruning.
UPDATE tokenrun_tokens SET pruning_note = $3 WHERE token_group = $1 AND pruning_note <=> $2;
SELECT EXISTS (
    SELECT 1 FROM tokenrun_tokens WHERE token_group = $1 AND pruning_note <=> $3
) AS noted
