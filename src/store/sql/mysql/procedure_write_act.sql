-- The step of tokenrun_swap, in its transaction, for an act of an operator. p_act: the act; p_forgets: the key
-- that it forgets.
CREATE /*M! OR REPLACE */ PROCEDURE tokenrun_write_act(
    IN p_group varchar(200) CHARACTER SET utf8mb4 COLLATE {binary},
    IN p_version bigint,
    IN p_fence bigint,
    IN p_act longtext CHARACTER SET utf8mb4 COLLATE {binary},
    IN p_forgets varchar(200) CHARACTER SET utf8mb4 COLLATE {binary},
    IN p_now datetime(6)
)
MODIFIES SQL DATA SQL SECURITY INVOKER
BEGIN
    IF p_act IS NOT NULL THEN
        INSERT INTO tokenrun_acts (token_group, at, version, fence, document)
        VALUES (p_group, p_now, p_version, p_fence, p_act);
    END IF;
    IF p_forgets IS NOT NULL THEN
        DELETE FROM tokenrun_done_keys WHERE token_group = p_group AND once_key = p_forgets;
    END IF;
END
