INSERT INTO refusal_totals (token_group, reason, total) VALUES (?1, ?2, 1)
ON CONFLICT DO UPDATE SET total = total + 1
