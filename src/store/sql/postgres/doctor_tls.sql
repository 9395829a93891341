SELECT version AS protocol FROM pg_stat_ssl WHERE pid = pg_backend_pid() AND ssl
