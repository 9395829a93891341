-- One batch of the oldest outputs: those that are too old (?2, ?3: NULL for none), and those that are not
-- among the ?5 newest.
DELETE FROM outputs WHERE token_group = ?1
  AND rowid IN (SELECT rowid FROM outputs WHERE token_group = ?1 ORDER BY fence LIMIT ?4)
  AND (
    (written_at < ?2 AND fence <= ?3) OR fence <= (
        SELECT fence FROM outputs WHERE token_group = ?1 ORDER BY fence DESC LIMIT 1 OFFSET ?5
    )
  )
