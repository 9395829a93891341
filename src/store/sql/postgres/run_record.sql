-- Before run_end.sql: a run by itself, whatever has become of its token.
durable AS MATERIALIZED (SELECT {durable} AS setting),
clock AS MATERIALIZED ({clock}),
swapped AS (SELECT now FROM durable, clock)
