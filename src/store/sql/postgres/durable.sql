-- For this statement alone, whatever the site's default is. What is stricter stays.
CASE current_setting('synchronous_commit')
        WHEN 'on' THEN NULL WHEN 'remote_apply' THEN NULL
        ELSE set_config('synchronous_commit', 'on', true)
    END