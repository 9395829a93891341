INSERT OR REPLACE INTO outputs (token_group, fence, session, written_at, document)
VALUES (?1, ?2, ?3, ?4, ?5)
