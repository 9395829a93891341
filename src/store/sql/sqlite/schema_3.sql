
-- Since version 3: how runs have ended. failures counts signalled and timed_out as well,
-- losses vanished. Columns of the token's row, which is written at each end anyway.
ALTER TABLE tokens ADD COLUMN succeeded INTEGER NOT NULL DEFAULT 0;
ALTER TABLE tokens ADD COLUMN signalled INTEGER NOT NULL DEFAULT 0;
ALTER TABLE tokens ADD COLUMN timed_out INTEGER NOT NULL DEFAULT 0;
ALTER TABLE tokens ADD COLUMN not_started INTEGER NOT NULL DEFAULT 0;
ALTER TABLE tokens ADD COLUMN vanished INTEGER NOT NULL DEFAULT 0;
ALTER TABLE tokens ADD COLUMN forced INTEGER NOT NULL DEFAULT 0;
