UPDATE waiters SET seen_at = ?3, seen_tick = ?4, clock_epoch = ?5
WHERE token_group = ?1 AND session = ?2
