-- Calls that were refused, folded: one row of interactions stands for those of a minute.

-- +goose Up
-- What few calls have beside their row in interactions. A table of its own: a column that is added comes after the answers, and a list
-- would read over them.
CREATE TABLE notes (
    call   TEXT   NOT NULL PRIMARY KEY REFERENCES interactions (id) ON DELETE CASCADE,
    count  BIGINT NOT NULL, -- calls that the row stands for
    detail TEXT   NOT NULL
);

-- The number of the newest row of a Feature in interactions. Rows and calls are not the same any more.
ALTER TABLE totals ADD COLUMN last BIGINT NOT NULL DEFAULT 0;
UPDATE totals SET last = calls WHERE scope = 'Feature';

-- +goose Down
ALTER TABLE totals DROP COLUMN last;
DROP TABLE notes;
