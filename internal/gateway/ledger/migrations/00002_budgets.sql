-- Budgets of input and output, and of calendar months.

-- +goose Up
CREATE TABLE counted (
    scope  TEXT   NOT NULL,
    key    TEXT   NOT NULL,
    period TEXT   NOT NULL, -- a month such as 2026-02; empty where there is one period only
    input  BIGINT NOT NULL, -- with what the provider had cached
    cached BIGINT NOT NULL,
    output BIGINT NOT NULL,
    cost   BIGINT NOT NULL,
    calls  BIGINT NOT NULL,
    PRIMARY KEY (scope, key, period)
);
-- Totals of Features go on; of tokens that were not counted apart, those of calls that are still there count as what they were and
-- the others as input. Totals of projects and of all begin anew: no month was noted before.
INSERT INTO counted (scope, key, period, input, cached, output, cost, calls)
SELECT t.scope, t.key, '', t.tokens - COALESCE(i.output, 0), COALESCE(i.cached, 0), COALESCE(i.output, 0), t.cost, t.calls
FROM totals t LEFT JOIN (SELECT feature_uid, SUM(cached) AS cached, SUM(output) AS output FROM interactions GROUP BY feature_uid) i ON i.feature_uid = t.key
WHERE t.scope = 'Feature';
DROP TABLE totals;
ALTER TABLE counted RENAME TO totals;

-- Whatever is reserved now belongs to calls of a gateway that is ending.
DELETE FROM reservations;
ALTER TABLE reservations RENAME COLUMN tokens TO input;
ALTER TABLE reservations ADD COLUMN output BIGINT NOT NULL DEFAULT 0;

-- +goose Down
ALTER TABLE reservations DROP COLUMN output;
ALTER TABLE reservations RENAME COLUMN input TO tokens;
CREATE TABLE summed (
    scope  TEXT   NOT NULL,
    key    TEXT   NOT NULL,
    tokens BIGINT NOT NULL,
    cost   BIGINT NOT NULL,
    calls  BIGINT NOT NULL,
    PRIMARY KEY (scope, key)
);
INSERT INTO summed (scope, key, tokens, cost, calls) SELECT scope, key, SUM(input) + SUM(output), SUM(cost), SUM(calls) FROM totals GROUP BY scope, key;
DROP TABLE totals;
ALTER TABLE summed RENAME TO totals;
