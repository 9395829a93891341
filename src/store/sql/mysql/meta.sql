-- The last step of making the tables: the row that says they are complete. A store without tokens has no past,
-- so it can't have forgotten a grant.
INSERT INTO tokenrun_meta (one, version, oldest_reader, note, note_version)
SELECT
    1, '1', '1',
    CONCAT(
        '{"version": 0, "incarnation": ', JSON_QUOTE(CONCAT(@tokenrun_server, '_', (
            SELECT DATE_FORMAT(create_time, '%Y-%m-%dT%H:%i:%sZ') FROM information_schema.tables
            WHERE table_schema = DATABASE() AND table_name = 'tokenrun_tokens'
        ))),
        ', "epoch": ', JSON_QUOTE(@tokenrun_epoch),
        ', "first_seen": {"tick_ms": ', now_ms, ', "wall_ms": ', now_ms, '}',
        ', "durable_then": ', (
            SELECT IF(durable, 'true', 'false') FROM ({durable}) AS restart
        ),
        IF(
            EXISTS (SELECT 1 FROM tokenrun_tokens),
            ', "served": 0, "why": "unnoted"}', ', "served": "everything", "why": "new"}'
        )
    ),
    0
FROM (
    SELECT TIMESTAMPDIFF(MICROSECOND, TIMESTAMP'1970-01-01 00:00:00', SYSDATE(6)) DIV 1000 AS now_ms
) AS clock
ON DUPLICATE KEY UPDATE one = one
