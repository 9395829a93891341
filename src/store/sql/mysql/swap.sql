-- $1: the group; $2: the version that was read; $3 to $9: the new row and whether it is stamped; $10: whether the
-- fence is new; $11: the session that leaves the queue; $12 to $14: the act and the key that it forgets; $15 to
-- $22: the run; $23, $24: the key that it makes done; $25 to $27: the note that a grant was judged by, its
-- incarnation, and whether commits were durable then; $28, $29: the expiry and its clock epoch.
CALL tokenrun_swap(
    $1, $2, $3, $4, $5, $6, $7, $8, $9, $28, $29, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21,
    $22, $23, $24, $25, $26, $27
)
