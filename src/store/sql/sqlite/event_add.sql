INSERT INTO events (
    token_group, at, tick, domain, version, act, client, until, once_key, fence,
    act_by, host, reason
) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)
