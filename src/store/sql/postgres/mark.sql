SELECT fence FROM resources WHERE resource = $1 AND pg_walfile_name('0/1') IS NOT NULL
