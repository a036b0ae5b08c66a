-- How much of the ledger the calls of a Feature take.

-- +goose Up
ALTER TABLE totals ADD COLUMN stored BIGINT NOT NULL DEFAULT 0;  -- bytes of the rows in interactions
ALTER TABLE totals ADD COLUMN dropped BIGINT NOT NULL DEFAULT 0; -- sequence of the newest call whose answers were dropped to make room
UPDATE totals SET stored = (SELECT COALESCE(SUM(1536 + OCTET_LENGTH(raw) + OCTET_LENGTH(formatted) + OCTET_LENGTH(violations)), 0)
FROM interactions WHERE feature_uid = totals.key) WHERE scope = 'Feature';

-- +goose Down
ALTER TABLE totals DROP COLUMN dropped;
ALTER TABLE totals DROP COLUMN stored;
