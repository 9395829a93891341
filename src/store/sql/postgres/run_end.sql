ended AS (
    UPDATE {schema}.runs
    SET outcome = $39, exit_code = $40, signal = $41, ended_at = now
    FROM swapped, clock
    WHERE token_group = $1 AND session = $38 AND outcome IN ('running', 'unknown')
)
