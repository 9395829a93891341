UPDATE tokens SET pruning_note = ?2 WHERE token_group = ?1
