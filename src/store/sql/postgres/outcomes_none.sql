(SELECT
    NULL::text AS token_group, 0::bigint AS succeeded, 0::bigint AS signalled,
    0::bigint AS timed_out, 0::bigint AS not_started, 0::bigint AS vanished,
    0::bigint AS forced WHERE false)