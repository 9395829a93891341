-- For this statement alone, whatever the site's default is. What is stricter stays.
SELECT CASE WHEN current_setting('synchronous_commit') NOT IN ('on', 'remote_apply')
    THEN set_config('synchronous_commit', 'on', true) END AS setting
