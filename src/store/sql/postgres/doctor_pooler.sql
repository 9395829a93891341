SELECT
    host(inet_client_addr()) AS client_address,
    inet_client_port()::bigint AS client_port,
    (
        SELECT (extract(epoch FROM clock_timestamp() - backend_start) * 1000)::bigint
        FROM pg_stat_activity WHERE pid = pg_backend_pid()
    ) AS age_ms
