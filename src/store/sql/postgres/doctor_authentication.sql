-- Since version 16, system_user is the method, a colon and the authenticated name. It is NULL if the
-- server required no authentication.
SELECT coalesce(split_part(system_user, ':', 1), 'trust') AS method
