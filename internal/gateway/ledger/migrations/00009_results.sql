-- What tools gave back to the model.

-- +goose Up
-- With the answers, so that it goes where they go: when room is made, and when the call is removed. A list reads neither.
ALTER TABLE interactions ADD COLUMN results BYTEA NOT NULL DEFAULT ''; -- JSON, compressed; empty for none

-- +goose Down
ALTER TABLE interactions DROP COLUMN results;
