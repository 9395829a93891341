-- The procedures that this user may call.
SELECT routine_name AS name FROM information_schema.routines
WHERE routine_schema = DATABASE() AND routine_name LIKE 'tokenrun\_%'
