-- A swap, or with p_version NULL the record of a run alone, whatever has become of its token. Everything from
-- the lock to the commit happens in the server: no client can stop in between, and an error ends the
-- transaction. It waits for no lock of a token: a row that another transaction has locked is not found. Rows
-- are read by SELECT ... INTO alone: a query within another statement would lock them.
--
-- p_from: the version that was read, NULL for none. p_stamped: whether the row gets a new stamp. After p_expiry,
-- or in another clock epoch than p_epoch, the swap has no effect. p_new_fence: a grant, or a raised fence, which
-- needs the row of the fence that a job's transaction may have locked. p_leaves: the session that leaves the
-- queue. p_act_fence, p_act: an operator's act; p_forgets: the key that it forgets. p_run_...: the run that
-- ends; p_own: its own session writes it, and replaces the outcome "unknown"; p_key, p_key_document: the key
-- that it makes done.
--
-- Its answer: done, already (a run is recorded already), conflict, expired, locked (by another swap), held (by
-- a job's transaction); the time; and how many sessions wait for the token that is held now.
CREATE PROCEDURE tokenrun_swap(
    IN p_group varchar(200) CHARACTER SET utf8mb4 COLLATE {binary},
    IN p_from bigint,
    IN p_version bigint,
    IN p_fence bigint,
    IN p_state varchar(20) CHARACTER SET utf8mb4 COLLATE {binary},
    IN p_client_bound varchar(200) CHARACTER SET utf8mb4 COLLATE {binary},
    IN p_expected_client varchar(200) CHARACTER SET utf8mb4 COLLATE {binary},
    IN p_stamped tinyint,
    IN p_document longtext CHARACTER SET utf8mb4 COLLATE {binary},
    IN p_expiry datetime(6),
    IN p_epoch varchar(300) CHARACTER SET utf8mb4 COLLATE {binary},
    IN p_new_fence tinyint,
    IN p_leaves varchar(200) CHARACTER SET utf8mb4 COLLATE {binary},
    IN p_act_fence bigint,
    IN p_act longtext CHARACTER SET utf8mb4 COLLATE {binary},
    IN p_forgets varchar(200) CHARACTER SET utf8mb4 COLLATE {binary},
    IN p_run_fence bigint,
    IN p_run_session varchar(200) CHARACTER SET utf8mb4 COLLATE {binary},
    IN p_run_client varchar(200) CHARACTER SET utf8mb4 COLLATE {binary},
    IN p_run_outcome varchar(20) CHARACTER SET utf8mb4 COLLATE {binary},
    IN p_run_started_at datetime(6),
    IN p_run_ended_at datetime(6),
    IN p_run_document longtext CHARACTER SET utf8mb4 COLLATE {binary},
    IN p_own tinyint,
    IN p_key varchar(200) CHARACTER SET utf8mb4 COLLATE {binary},
    IN p_key_document longtext CHARACTER SET utf8mb4 COLLATE {binary}
)
MODIFIES SQL DATA SQL SECURITY INVOKER
BEGIN
    DECLARE v_now datetime(6);
    DECLARE v_version, v_fence bigint;
    DECLARE v_fences, v_written, v_waits int DEFAULT 0;
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
    IF p_version IS NOT NULL THEN
        SELECT version INTO v_version FROM tokenrun_tokens
        WHERE token_group = p_group FOR UPDATE SKIP LOCKED;
        IF p_new_fence THEN
            SELECT COUNT(*) INTO v_fences FROM tokenrun_fences WHERE token_group = p_group;
            SELECT fence INTO v_fence FROM tokenrun_fences
            WHERE token_group = p_group FOR UPDATE SKIP LOCKED;
        END IF;
    END IF;
    SET v_now = SYSDATE(6);
    IF p_version IS NULL THEN
        BEGIN END;
    ELSE
        IF v_version IS NULL THEN
            -- It is locked, or not there.
            SELECT version INTO v_version FROM tokenrun_tokens WHERE token_group = p_group;
            IF v_version IS NOT NULL THEN
                SET v_what = 'locked';
            END IF;
        END IF;
        IF NOT v_version <=> p_from THEN
            SET v_what = 'conflict';
        ELSEIF v_now > p_expiry OR NOT CAST(@tokenrun_epoch AS BINARY) <=> CAST(p_epoch AS BINARY) THEN
            SET v_what = 'expired';
        ELSEIF v_what = 'done' AND v_fences > 0 AND v_fence IS NULL THEN
            SET v_what = 'held';
        ELSEIF v_what = 'done' AND p_from IS NULL THEN
            BEGIN
                -- Another client was quicker.
                DECLARE CONTINUE HANDLER FOR 1062 SET v_what = 'conflict';
                INSERT INTO tokenrun_tokens (
                    token_group, version, fence, state, client_bound, expected_client, stamped_at,
                    clock_epoch, document
                ) VALUES (
                    p_group, p_version, p_fence, p_state, p_client_bound, p_expected_client, v_now,
                    p_epoch, p_document
                );
            END;
            -- It may have waited for the other's commit.
            IF v_what = 'done' AND SYSDATE(6) > p_expiry THEN
                SET v_what = 'expired', v_now = SYSDATE(6);
            END IF;
        ELSEIF v_what = 'done' THEN
            UPDATE tokenrun_tokens SET
                version = p_version, fence = p_fence, state = p_state, client_bound = p_client_bound,
                expected_client = p_expected_client,
                stamped_at = IF(p_stamped, v_now, stamped_at),
                clock_epoch = IF(p_stamped, p_epoch, clock_epoch),
                document = p_document
            WHERE token_group = p_group;
        END IF;
        IF v_what = 'done' THEN
            IF p_new_fence OR p_from IS NULL THEN
                INSERT INTO tokenrun_fences (token_group, fence) VALUES (p_group, p_fence)
                ON DUPLICATE KEY UPDATE fence = p_fence;
            END IF;
            IF p_leaves IS NOT NULL THEN
                DELETE FROM tokenrun_waiters WHERE token_group = p_group AND session = p_leaves;
            END IF;
            IF p_act IS NOT NULL THEN
                INSERT INTO tokenrun_acts (token_group, at, version, fence, document)
                VALUES (p_group, v_now, p_version, p_act_fence, p_act);
            END IF;
            IF p_forgets IS NOT NULL THEN
                DELETE FROM tokenrun_done_keys WHERE token_group = p_group AND once_key = p_forgets;
            END IF;
        END IF;
    END IF;
    IF v_what = 'done' AND p_run_session IS NOT NULL THEN
        -- The outcome is replaced last: the others depend on the old one.
        INSERT INTO tokenrun_runs (
            token_group, fence, session, client, outcome, started_at, ended_at, document, written_at
        ) VALUES (
            p_group, p_run_fence, p_run_session, p_run_client, p_run_outcome, p_run_started_at,
            COALESCE(p_run_ended_at, v_now), p_run_document, v_now
        )
        ON DUPLICATE KEY UPDATE
            ended_at = IF(
                p_own AND outcome = 'unknown' AND p_run_outcome <> 'unknown',
                COALESCE(p_run_ended_at, v_now), ended_at
            ),
            document = IF(
                p_own AND outcome = 'unknown' AND p_run_outcome <> 'unknown', p_run_document, document
            ),
            written_at = IF(
                p_own AND outcome = 'unknown' AND p_run_outcome <> 'unknown', v_now, written_at
            ),
            outcome = IF(
                p_own AND outcome = 'unknown' AND p_run_outcome <> 'unknown', p_run_outcome, outcome
            );
        SET v_written = ROW_COUNT();
        IF v_written > 0 AND p_key IS NOT NULL THEN
            INSERT INTO tokenrun_done_keys (token_group, once_key, done_at, fence, document)
            VALUES (p_group, p_key, COALESCE(p_run_ended_at, v_now), p_run_fence, p_key_document)
            ON DUPLICATE KEY UPDATE token_group = token_group;
        END IF;
        IF p_version IS NULL AND v_written = 0 THEN
            SET v_what = 'already';
        END IF;
    END IF;
    IF v_what = 'done' THEN
        COMMIT;
    ELSE
        ROLLBACK;
    END IF;
    IF v_what = 'done' AND p_state = 'running' THEN
        SELECT COUNT(*) INTO v_waits FROM tokenrun_waiters WHERE token_group = p_group;
    END IF;
    SELECT v_what AS what, v_now AS now, @tokenrun_epoch AS epoch, v_waits AS waits;
END
