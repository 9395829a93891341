-- Since version 2: who waits, by arrival (place). seen_at: the last sign of life, by the
-- clock of domain; who gave none for 2.5 s is not in line any more.
CREATE TABLE IF NOT EXISTS {schema}.waiters (
    token_group text COLLATE "C" NOT NULL,
    session     text NOT NULL,
    place       bigint GENERATED ALWAYS AS IDENTITY,
    client      text NOT NULL,
    failback    boolean NOT NULL,
    seen_at     timestamptz NOT NULL,
    domain      text NOT NULL,
    PRIMARY KEY (token_group, session)
) WITH (fillfactor = 50);

UPDATE {schema}.meta SET value = '2' WHERE name = 'version' AND value = '1';
