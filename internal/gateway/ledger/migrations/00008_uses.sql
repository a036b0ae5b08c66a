-- Uses of tools that providers run, beside searches.

-- +goose Up
-- Few calls have any. See 00006 for why they are not in interactions.
ALTER TABLE notes ADD COLUMN fetches BIGINT NOT NULL DEFAULT 0;
ALTER TABLE notes ADD COLUMN executions BIGINT NOT NULL DEFAULT 0;
ALTER TABLE notes ADD COLUMN file_searches BIGINT NOT NULL DEFAULT 0;
ALTER TABLE notes ADD COLUMN images BIGINT NOT NULL DEFAULT 0;
ALTER TABLE notes ADD COLUMN connectors BIGINT NOT NULL DEFAULT 0;

-- +goose Down
ALTER TABLE notes DROP COLUMN connectors;
ALTER TABLE notes DROP COLUMN images;
ALTER TABLE notes DROP COLUMN file_searches;
ALTER TABLE notes DROP COLUMN executions;
ALTER TABLE notes DROP COLUMN fetches;
