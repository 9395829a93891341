-- The tables whose engine is another than InnoDB.
SELECT table_name AS name, engine FROM information_schema.tables
WHERE table_schema = DATABASE() AND table_name LIKE 'tokenrun\_%' AND engine <> 'InnoDB'
ORDER BY table_name
