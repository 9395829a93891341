SELECT ssl, version FROM pg_stat_ssl WHERE pid = pg_backend_pid()
