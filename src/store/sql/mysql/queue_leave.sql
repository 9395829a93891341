DELETE FROM tokenrun_waiters WHERE token_group = $1 AND session = $2
