SELECT version, oldest_reader FROM tokenrun_meta WHERE one = 1
