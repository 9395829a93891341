ended AS (
    UPDATE {schema}.runs
    SET outcome = $40, exit_code = $41, signal = $42, ended_at = now
    FROM swapped, clock
    WHERE token_group = $1 AND fence = $38 AND session = $39
        AND outcome IN ('running', 'unknown')
)
