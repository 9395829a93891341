-- The numbers of refusals.
SELECT token_group, reason, total, '{}' AS document
FROM tokenrun_refusal_totals ORDER BY token_group, reason
