-- For a job's own transaction. It holds off a takeover until the transaction ends, and no heartbeat. It raises
-- an error if the fence is stale. It runs with its owner's rights, so a job's role needs EXECUTE alone.
CREATE /*M! OR REPLACE */ PROCEDURE tokenrun_fence(
    IN p_group varchar(200) CHARACTER SET utf8mb4 COLLATE {binary},
    IN p_fence bigint
)
READS SQL DATA SQL SECURITY DEFINER
BEGIN
    DECLARE v_fence bigint;
    DECLARE v_running int;
    DECLARE v_text varchar(128) CHARACTER SET utf8mb4 COLLATE {binary};
    SELECT fence INTO v_fence FROM tokenrun_fences
    WHERE token_group = p_group AND fence = p_fence LOCK IN SHARE MODE;
    -- Not within another statement, which would lock the row, and hold heartbeats off.
    SELECT COUNT(*) INTO v_running FROM tokenrun_tokens
    WHERE token_group = p_group AND fence = p_fence AND state = 'running';
    IF v_fence IS NULL OR v_running = 0 THEN
        SET v_text = CONCAT(
            'the fence ', COALESCE(p_fence, 'NULL'), ' of group ', COALESCE(LEFT(p_group, 40), 'NULL'),
            ' is stale: end this job'
        );
        SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = v_text;
    END IF;
END
