event AS (
    INSERT INTO {schema}.events (
        token_group, at, domain, version, act, client, until, once_key, fence, act_by, host,
        reason
    )
    SELECT $1, now, $47, $38, $39, $40, $41, $42, $43, $44, $45, $46
    FROM swapped, clock
)
