SELECT pruning_note FROM tokens WHERE token_group = ?1
