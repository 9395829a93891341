-- The step of tokenrun_swap, in its transaction, for a swap that does not simply replace the row that was read:
-- the token's row or its fence is locked, changed or not there yet, or the swap has expired. The parameters are
-- those of tokenrun_swap, with the version and the fence that it has locked (NULL: none). p_what: what the swap
-- has come to; "done" if the token is made now, or if it may be replaced all the same.
CREATE /*M! OR REPLACE */ PROCEDURE tokenrun_swap_unusual(
    IN p_group varchar(200) CHARACTER SET utf8mb4 COLLATE {binary},
    IN p_from bigint,
    IN p_version bigint,
    IN p_fence bigint,
    IN p_state varchar(20) CHARACTER SET utf8mb4 COLLATE {binary},
    IN p_client_bound varchar(200) CHARACTER SET utf8mb4 COLLATE {binary},
    IN p_expected_client varchar(200) CHARACTER SET utf8mb4 COLLATE {binary},
    IN p_document longtext CHARACTER SET utf8mb4 COLLATE {binary},
    IN p_expiry datetime(6),
    IN p_epoch varchar(300) CHARACTER SET utf8mb4 COLLATE {binary},
    IN p_new_fence tinyint,
    IN p_locked_version bigint,
    IN p_locked_fence bigint,
    INOUT p_now datetime(6),
    OUT p_what varchar(20) CHARACTER SET utf8mb4 COLLATE {binary}
)
MODIFIES SQL DATA SQL SECURITY INVOKER
BEGIN
    DECLARE v_now datetime(6) DEFAULT p_now;
    DECLARE v_version bigint DEFAULT p_locked_version;
    DECLARE v_fences int DEFAULT 0;
    SET p_what = 'done';
    IF v_version IS NULL THEN
        -- It is locked, or not there.
        SELECT version INTO v_version FROM tokenrun_tokens WHERE token_group = p_group;
        IF v_version IS NOT NULL THEN
            SET p_what = 'locked';
        END IF;
    END IF;
    IF p_new_fence AND p_locked_fence IS NULL THEN
        -- So is the fence.
        SELECT COUNT(*) INTO v_fences FROM tokenrun_fences WHERE token_group = p_group;
    END IF;
    IF NOT v_version <=> p_from THEN
        SET p_what = 'conflict';
    ELSEIF v_now > p_expiry OR NOT CAST(@tokenrun_epoch AS BINARY) <=> CAST(p_epoch AS BINARY) THEN
        SET p_what = 'expired';
    ELSEIF p_what = 'done' AND v_fences > 0 THEN
        SET p_what = 'held';
    ELSEIF p_what = 'done' AND p_from IS NULL THEN
        BEGIN
            -- Another client was quicker.
            DECLARE CONTINUE HANDLER FOR 1062 SET p_what = 'conflict';
            INSERT INTO tokenrun_tokens (
                token_group, version, fence, state, client_bound, expected_client, stamped_at, clock_epoch,
                document
            ) VALUES (
                p_group, p_version, p_fence, p_state, p_client_bound, p_expected_client, v_now, p_epoch,
                p_document
            );
        END;
        -- It may have waited for the other's commit.
        SET p_now = SYSDATE(6);
        IF p_what = 'done' AND p_now > p_expiry THEN
            SET p_what = 'expired';
        ELSE
            SET p_now = v_now;
        END IF;
    END IF;
END
