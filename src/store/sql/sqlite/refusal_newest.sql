SELECT first_at, last_at, count FROM refusals
WHERE token_group = ?1 AND client = ?2 AND cause = ?3 AND last_at <= ?4
ORDER BY last_at DESC LIMIT 1
