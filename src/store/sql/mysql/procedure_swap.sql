-- A swap, or with p_version NULL the record of a run alone, whatever has become of its token. Everything from
-- the lock to the commit happens in the server: no client can stop in between, and an error ends the
-- transaction. It waits for no lock of a token: a row that another transaction has locked is not found. Rows
-- are read by SELECT ... INTO alone: a query within another statement would lock them.
--
-- Each session reads the text of a procedure again when it first calls it. So the steps that few swaps need are
-- procedures of their own, which share this one's transaction.
--
-- p_from: the version that was read, NULL for none. p_stamped: whether the row gets a new stamp. After p_expiry,
-- or in another clock epoch than p_epoch, the swap has no effect. p_new_fence: a grant, or a raised fence, which
-- needs the row of the fence that a job's transaction may have locked. A release writes that row
-- too, if no job's transaction has locked it. p_leaves: the session that leaves the queue. p_act_fence, p_act:
-- an operator's act; p_forgets: the key that it forgets. p_run_...: the run that ends; p_own: its own session
-- writes it, and replaces the outcome "unknown"; p_key, p_key_document: the key that it makes done. p_note: the
-- version of the note that a grant was judged by, NULL for none; p_incarnation: the incarnation that it names;
-- p_durable: whether commits were durable then. If one of these has changed since, the grant is a conflict.
--
-- Its answer: done, already (a run is recorded already), conflict, expired, locked (by another swap), held (by
-- a job's transaction); the time; and how many sessions wait for the token that is held now.
CREATE /*M! OR REPLACE */ PROCEDURE tokenrun_swap(
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
    IN p_key_document longtext CHARACTER SET utf8mb4 COLLATE {binary},
    IN p_note bigint,
    IN p_incarnation varchar(600) CHARACTER SET utf8mb4 COLLATE {binary},
    IN p_durable tinyint
)
MODIFIES SQL DATA SQL SECURITY INVOKER
BEGIN
    DECLARE v_now datetime(6);
    DECLARE v_version, v_fence, v_note bigint;
    DECLARE v_made varchar(600) CHARACTER SET utf8mb4 COLLATE {binary};
    DECLARE v_written, v_waits int DEFAULT 0;
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
        IF p_new_fence OR p_state <> 'running' THEN
            SELECT fence INTO v_fence FROM tokenrun_fences
            WHERE token_group = p_group FOR UPDATE SKIP LOCKED;
        END IF;
        IF p_note IS NOT NULL THEN
            SELECT CONCAT(@tokenrun_server, '_', DATE_FORMAT(create_time, '%Y-%m-%dT%H:%i:%sZ')) INTO v_made
            FROM information_schema.tables
            WHERE table_schema = DATABASE() AND table_name = 'tokenrun_tokens' AND engine = 'InnoDB';
            SELECT note_version INTO v_note FROM tokenrun_meta WHERE one = 1;
            IF NOT v_note <=> p_note OR NOT v_made <=> p_incarnation
                OR (p_durable AND @@global.innodb_flush_log_at_trx_commit <> 1)
            THEN
                SET v_what = 'conflict';
            END IF;
        END IF;
        SET v_now = SYSDATE(6);
        IF v_what = 'done' AND (
            NOT v_version <=> p_from OR p_from IS NULL OR (p_new_fence AND v_fence IS NULL)
            OR v_now > p_expiry OR NOT CAST(@tokenrun_epoch AS BINARY) <=> CAST(p_epoch AS BINARY)
        ) THEN
            CALL tokenrun_swap_unusual(
                p_group, p_from, p_version, p_fence, p_state, p_client_bound, p_expected_client, p_document,
                p_expiry, p_epoch, p_new_fence, v_version, v_fence, v_now, v_what
            );
        END IF;
        IF v_what = 'done' AND p_from IS NOT NULL THEN
            UPDATE tokenrun_tokens SET
                version = p_version, fence = p_fence, state = p_state, client_bound = p_client_bound,
                expected_client = p_expected_client,
                stamped_at = IF(p_stamped, v_now, stamped_at),
                clock_epoch = IF(p_stamped, p_epoch, clock_epoch),
                document = p_document
            WHERE token_group = p_group AND version = p_from;
            -- The table may have an engine that locks no rows. Rows that stay as they are do not count.
            IF ROW_COUNT() <> 1 AND p_version <> p_from THEN
                SET v_what = 'conflict';
            END IF;
        END IF;
        IF v_what = 'done' AND (p_new_fence OR p_from IS NULL OR v_fence IS NOT NULL) THEN
            SET v_fence = IF(p_state = 'running', p_fence, -1 - p_fence);
            INSERT INTO tokenrun_fences (token_group, fence) VALUES (p_group, v_fence)
            ON DUPLICATE KEY UPDATE fence = v_fence;
        END IF;
        IF v_what = 'done' AND p_leaves IS NOT NULL THEN
            DELETE FROM tokenrun_waiters WHERE token_group = p_group AND session = p_leaves;
        END IF;
        IF v_what = 'done' AND (p_act IS NOT NULL OR p_forgets IS NOT NULL) THEN
            CALL tokenrun_write_act(p_group, p_version, p_act_fence, p_act, p_forgets, v_now);
        END IF;
    ELSE
        SET v_now = SYSDATE(6);
    END IF;
    IF v_what = 'done' AND p_run_session IS NOT NULL THEN
        INSERT INTO tokenrun_runs (
            token_group, fence, session, client, outcome, started_at, ended_at, document, written_at
        ) VALUES (
            p_group, p_run_fence, p_run_session, p_run_client, p_run_outcome, p_run_started_at,
            COALESCE(p_run_ended_at, v_now), p_run_document, v_now
        )
        ON DUPLICATE KEY UPDATE outcome = outcome;
        SET v_written = ROW_COUNT();
        IF v_written = 0 OR p_key IS NOT NULL THEN
            CALL tokenrun_write_run_unusual(
                p_group, p_run_fence, p_run_session, p_run_outcome, COALESCE(p_run_ended_at, v_now),
                p_run_document, p_own AND p_run_outcome <> 'unknown', p_key, p_key_document, v_now, v_written
            );
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
