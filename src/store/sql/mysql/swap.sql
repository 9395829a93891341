-- $1: the group; $2: the version that was read; $3 to $9: the new row and whether it is stamped; $10, $11: the
-- expiry and its clock epoch; $12: whether the fence is new; $13: the session that leaves the queue; $14 to
-- $16: the act and the key that it forgets; $17 to $24: the run; $25, $26: the key that it makes done; $27 to
-- $29: the note that a grant was judged by, its incarnation, and whether commits were durable then.
CALL tokenrun_swap(
    $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23,
    $24, $25, $26, $27, $28, $29
)
