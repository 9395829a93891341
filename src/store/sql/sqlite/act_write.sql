INSERT INTO acts (token_group, at, version, fence, document) VALUES (?1, ?2, ?3, ?4, ?5)
