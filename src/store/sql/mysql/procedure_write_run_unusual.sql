-- The step of tokenrun_swap, in its transaction, for a run that is recorded already, or that makes a key done.
-- p_final: the run replaces a record of it whose outcome is unknown. p_key, p_key_document: the key that it makes
-- done. p_written: whether the run was written.
CREATE /*M! OR REPLACE */ PROCEDURE tokenrun_write_run_unusual(
    IN p_group varchar(200) CHARACTER SET utf8mb4 COLLATE {binary},
    IN p_fence bigint,
    IN p_session varchar(200) CHARACTER SET utf8mb4 COLLATE {binary},
    IN p_outcome varchar(20) CHARACTER SET utf8mb4 COLLATE {binary},
    IN p_ended_at datetime(6),
    IN p_document longtext CHARACTER SET utf8mb4 COLLATE {binary},
    IN p_final tinyint,
    IN p_key varchar(200) CHARACTER SET utf8mb4 COLLATE {binary},
    IN p_key_document longtext CHARACTER SET utf8mb4 COLLATE {binary},
    IN p_now datetime(6),
    INOUT p_written int
)
MODIFIES SQL DATA SQL SECURITY INVOKER
BEGIN
    IF p_written = 0 AND p_final THEN
        UPDATE tokenrun_runs SET
            outcome = p_outcome, ended_at = p_ended_at, document = p_document, written_at = p_now
        WHERE token_group = p_group AND fence = p_fence AND session = p_session AND outcome = 'unknown';
        SET p_written = ROW_COUNT();
    END IF;
    IF p_written > 0 AND p_key IS NOT NULL THEN
        INSERT INTO tokenrun_done_keys (token_group, once_key, done_at, fence, document)
        VALUES (p_group, p_key, p_ended_at, p_fence, p_key_document)
        ON DUPLICATE KEY UPDATE token_group = token_group;
    END IF;
END
