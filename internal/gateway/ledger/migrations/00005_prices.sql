-- Kinds of tokens that have prices of their own, and what was not counted or not granted.

-- +goose Up
ALTER TABLE interactions ADD COLUMN writes BIGINT NOT NULL DEFAULT 0;       -- input that the provider put into its cache
ALTER TABLE interactions ADD COLUMN long_writes BIGINT NOT NULL DEFAULT 0;  -- input that it keeps there for an hour
ALTER TABLE interactions ADD COLUMN searches BIGINT NOT NULL DEFAULT 0;     -- uses of tools that it bills by use
ALTER TABLE interactions ADD COLUMN estimated BIGINT NOT NULL DEFAULT 0;    -- 1 where it has not counted all tokens
ALTER TABLE interactions ADD COLUMN output_limit BIGINT NOT NULL DEFAULT 0; -- that budgets left to the call; 0 for what it asked for

-- +goose Down
ALTER TABLE interactions DROP COLUMN output_limit;
ALTER TABLE interactions DROP COLUMN estimated;
ALTER TABLE interactions DROP COLUMN searches;
ALTER TABLE interactions DROP COLUMN long_writes;
ALTER TABLE interactions DROP COLUMN writes;
