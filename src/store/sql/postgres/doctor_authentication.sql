-- Since version 16: the method, a colon, and the name that was proven; none if nothing was asked.
SELECT split_part(system_user, ':', 1) AS method
