-- Records a refused run. p_pause, p_same: within how many milliseconds of the last refusal nothing is written,
-- and the newest record grows.
CREATE /*M! OR REPLACE */ PROCEDURE tokenrun_refuse(
    IN p_group varchar(200) CHARACTER SET utf8mb4 COLLATE {binary},
    IN p_client varchar(200) CHARACTER SET utf8mb4 COLLATE {binary},
    IN p_reason varchar(200) CHARACTER SET utf8mb4 COLLATE {binary},
    IN p_cause varchar(200) CHARACTER SET utf8mb4 COLLATE {binary},
    IN p_fence bigint,
    IN p_document longtext CHARACTER SET utf8mb4 COLLATE {binary},
    IN p_pause bigint,
    IN p_same bigint
)
MODIFIES SQL DATA SQL SECURITY INVOKER
BEGIN
    DECLARE v_now, v_first, v_last datetime(6);
    DECLARE v_count bigint;
    DECLARE v_age bigint;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
        ROLLBACK;
        RESIGNAL;
    END;
    SET v_now = SYSDATE(6);
    SELECT MAX(last_at) INTO v_last FROM tokenrun_refusals
    WHERE token_group = p_group AND client = p_client AND cause = p_cause AND last_at <= v_now;
    SET v_age = TIMESTAMPDIFF(MICROSECOND, v_last, v_now);
    IF v_age IS NULL OR v_age >= p_pause * 1000 THEN
        START TRANSACTION;
        SET v_first = v_now, v_count = 1;
        IF v_age < p_same * 1000 THEN
            SELECT first_at, count + 1 INTO v_first, v_count FROM tokenrun_refusals
            WHERE token_group = p_group AND client = p_client AND cause = p_cause AND last_at = v_last
            ORDER BY first_at DESC LIMIT 1;
        END IF;
        INSERT INTO tokenrun_refusals (
            token_group, client, reason, cause, first_at, last_at, count, fence, document
        ) VALUES (
            p_group, p_client, p_reason, p_cause, v_first, v_now, v_count, p_fence, p_document
        )
        ON DUPLICATE KEY UPDATE
            last_at = v_now, count = v_count, fence = p_fence, document = p_document;
        INSERT INTO tokenrun_refusal_totals (token_group, reason, total) VALUES (p_group, p_reason, 1)
        ON DUPLICATE KEY UPDATE total = total + 1;
        COMMIT;
    END IF;
END
