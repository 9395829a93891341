-- The numbers of refusals.
SELECT token_group, reason, total, '{}' AS document
FROM refusal_totals WHERE pg_walfile_name('0/1') IS NOT NULL
ORDER BY token_group, reason
