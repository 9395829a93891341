
-- Since version 2: who waits, by arrival (place). seen_at, seen_tick: the last sign of
-- life, by the clock of domain; who gave none for 2.5 s is not in line any more. failback: 0, 1.
CREATE TABLE waiters (
    token_group TEXT NOT NULL,
    place       INTEGER NOT NULL,
    session     TEXT NOT NULL,
    client      TEXT NOT NULL,
    failback    INTEGER NOT NULL,
    seen_at     TEXT NOT NULL,
    seen_tick   INTEGER NOT NULL,
    domain      TEXT NOT NULL,
    PRIMARY KEY (token_group, place)
) STRICT, WITHOUT ROWID;
