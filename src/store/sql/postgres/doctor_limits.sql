-- The limits of a session, without those that this transaction has set for itself. `unlimited`: roles of
-- jobs that may hold a transaction open forever.
WITH limits AS (
    SELECT name, reset_val::bigint AS setting FROM pg_settings
    WHERE name IN (
        'idle_in_transaction_session_timeout', 'tcp_keepalives_idle',
        'tcp_keepalives_interval', 'tcp_keepalives_count'
    )
)
SELECT
    current_user::text AS role,
    inet_client_addr() IS NULL AS local,
    (SELECT setting FROM limits WHERE name = 'tcp_keepalives_idle') AS idle_s,
    (SELECT setting FROM limits WHERE name = 'tcp_keepalives_interval') AS interval_s,
    (SELECT setting FROM limits WHERE name = 'tcp_keepalives_count') AS count,
    (SELECT setting FROM limits WHERE name LIKE 'idle_in%') AS idle_in_transaction_ms,
    ARRAY(
        SELECT member.rolname::text
        FROM pg_auth_members
        JOIN pg_roles AS job ON job.oid = roleid AND job.rolname = 'tokenrun_job'
        JOIN pg_roles AS member ON member.oid = pg_auth_members.member
        WHERE member.rolcanlogin
            AND NOT EXISTS (
                SELECT FROM pg_db_role_setting, unnest(setconfig) AS line
                WHERE setrole IN (0, member.oid)
                    AND line LIKE 'idle_in_transaction_session_timeout=%' AND line NOT LIKE '%=0'
            )
            -- The server's configuration has no limit for all roles either. It has one if this session
            -- has a limit that no setting of its role or database gives it.
            AND NOT EXISTS (
                SELECT FROM limits
                WHERE name LIKE 'idle_in%' AND setting > 0 AND NOT EXISTS (
                    SELECT FROM pg_db_role_setting, unnest(setconfig) AS line
                    WHERE setrole IN (0, (SELECT oid FROM pg_roles WHERE rolname = session_user))
                        AND line LIKE 'idle_in_transaction_session_timeout=%'
                )
            )
        ORDER BY 1 LIMIT 10
    ) AS unlimited
