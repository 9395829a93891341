-- The output of a run. $1 to $3: group, fence, session; $4: the document.
INSERT INTO tokenrun_outputs (token_group, fence, session, written_at, document)
VALUES ($1, $2, $3, SYSDATE(6), $4)
ON DUPLICATE KEY UPDATE written_at = SYSDATE(6), document = $4
