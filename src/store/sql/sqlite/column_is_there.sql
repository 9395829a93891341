SELECT 1 FROM pragma_table_info(?1) WHERE name = ?2
