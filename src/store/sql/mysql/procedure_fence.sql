-- For a job's own transaction. It holds off a takeover until the transaction ends, and no heartbeat. It raises
-- an error if the fence is stale. It runs with its owner's rights, so a job's role needs EXECUTE alone.
CREATE /*M! OR REPLACE */ PROCEDURE tokenrun_fence(
    IN p_group varchar(200) CHARACTER SET utf8mb4 COLLATE {binary},
    IN p_fence bigint
)
READS SQL DATA SQL SECURITY DEFINER
BEGIN
    DECLARE v_fence bigint;
    DECLARE v_begun, v_is_xa, v_locks int DEFAULT 0;
    DECLARE v_text varchar(128) CHARACTER SET utf8mb4 COLLATE {binary};
    -- No row of tokenrun_tokens is read: in a SERIALIZABLE transaction that would lock it, and hold heartbeats off.
    SELECT fence INTO v_fence FROM tokenrun_fences
    WHERE token_group = p_group AND fence = p_fence AND p_fence >= 0 LOCK IN SHARE MODE;
    IF v_fence IS NULL THEN
        SET v_text = CONCAT(
            'the fence ', COALESCE(p_fence, 'NULL'), ' of group ', COALESCE(LEFT(p_group, 40), 'NULL'),
            ' is stale: end this job'
        );
        SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = v_text;
    END IF;
    -- XA PREPARE gives the lock up. Whether this is an XA transaction shows by the error of beginning another:
    -- 1399 in one, 1400 in any other transaction. The select comes first, for a SET TRANSACTION is the job's.
    BEGIN
        DECLARE CONTINUE HANDLER FOR SQLEXCEPTION SET v_begun = 0;
        DECLARE CONTINUE HANDLER FOR 1399 SET v_begun = 0, v_is_xa = 1;
        SET v_begun = 1;
        XA START 'tokenrun_fence';
        IF v_begun THEN
            XA END 'tokenrun_fence';
            XA ROLLBACK 'tokenrun_fence';
        END IF;
    END;
    SELECT COUNT(*) INTO v_locks FROM information_schema.tables
    WHERE table_schema = DATABASE() AND table_name = 'tokenrun_fences' AND engine = 'InnoDB';
    IF v_locks = 0 THEN
        SIGNAL SQLSTATE '0A000' SET MESSAGE_TEXT = 'the fence does not hold: the table tokenrun_fences must be InnoDB';
    END IF;
    IF v_is_xa THEN
        SIGNAL SQLSTATE '0A000' SET MESSAGE_TEXT = 'the fence does not hold in an XA transaction: XA PREPARE ends its lock';
    END IF;
END
