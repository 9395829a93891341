-- Writes the note of the incarnation, unless it has changed since it was read. p_from: the version that was
-- read, p_version: the next version. After p_expiry, or in another clock epoch than p_epoch, it has no effect.
-- p_group, p_fence, p_act: the act of an operator, if it is one. Its answer is that of tokenrun_swap.
CREATE /*M! OR REPLACE */ PROCEDURE tokenrun_note(
    IN p_from bigint,
    IN p_version bigint,
    IN p_note longtext CHARACTER SET utf8mb4 COLLATE {binary},
    IN p_expiry datetime(6),
    IN p_epoch varchar(300) CHARACTER SET utf8mb4 COLLATE {binary},
    IN p_group varchar(200) CHARACTER SET utf8mb4 COLLATE {binary},
    IN p_fence bigint,
    IN p_act longtext CHARACTER SET utf8mb4 COLLATE {binary}
)
MODIFIES SQL DATA SQL SECURITY INVOKER
BEGIN
    DECLARE v_now datetime(6);
    DECLARE v_there int;
    DECLARE v_version bigint;
    DECLARE v_what varchar(20) DEFAULT 'done';
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
        ROLLBACK;
        RESIGNAL;
    END;
    IF @@global.read_only NOT IN ('0', 'OFF') THEN
        SIGNAL SQLSTATE '25006' SET MYSQL_ERRNO = 1290, MESSAGE_TEXT = 'the server is read-only';
    END IF;
    START TRANSACTION;
    SELECT one INTO v_there FROM tokenrun_meta WHERE one = 1 FOR UPDATE SKIP LOCKED;
    SELECT note_version INTO v_version FROM tokenrun_meta WHERE one = 1;
    SET v_now = SYSDATE(6);
    IF NOT v_version <=> p_from THEN
        SET v_what = 'conflict';
    ELSEIF v_now > p_expiry OR NOT CAST(@tokenrun_epoch AS BINARY) <=> CAST(p_epoch AS BINARY) THEN
        SET v_what = 'expired';
    ELSEIF v_there IS NULL THEN
        SET v_what = 'locked';
    ELSE
        UPDATE tokenrun_meta SET note = p_note, note_version = p_version
        WHERE one = 1 AND note_version <=> p_from;
        -- The table may have an engine that locks no rows. Rows that stay as they are do not count.
        IF ROW_COUNT() <> 1 AND NOT p_version <=> p_from THEN
            SET v_what = 'conflict';
        ELSEIF p_act IS NOT NULL THEN
            INSERT INTO tokenrun_acts (token_group, at, version, fence, document)
            VALUES (p_group, v_now, p_version, p_fence, p_act);
        END IF;
    END IF;
    IF v_what = 'done' THEN
        COMMIT;
    ELSE
        ROLLBACK;
    END IF;
    SELECT v_what AS what, v_now AS now, @tokenrun_epoch AS epoch;
END
