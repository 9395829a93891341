SELECT token_group, at, version, fence, document
FROM acts
WHERE (?2 IS NULL OR token_group = ?2) AND (?3 IS NULL OR at >= ?3)
  AND (?4 IS NULL OR at < ?4)
ORDER BY at DESC, version LIMIT ?1
