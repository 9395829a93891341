SELECT token_group, reason, total, '{}' AS document FROM refusal_totals ORDER BY token_group, reason
