-- What was done about agents that were in trouble.

-- +goose Up
CREATE TABLE steering (
    feature_uid TEXT   NOT NULL,
    sequence    BIGINT NOT NULL,
    at          BIGINT NOT NULL,
    attempt     BIGINT NOT NULL,
    task        TEXT   NOT NULL,
    thread      BIGINT NOT NULL,
    turn        BIGINT NOT NULL,
    request     TEXT   NOT NULL, -- request_digest of an interaction; empty for none
    anomaly     TEXT   NOT NULL,
    detector    TEXT   NOT NULL,
    evidence    TEXT   NOT NULL,
    rung        TEXT   NOT NULL,
    ended       BIGINT NOT NULL, -- 1 where the anomaly is over
    message     TEXT   NOT NULL,
    channel     TEXT   NOT NULL,
    missing     TEXT   NOT NULL, -- why removed and summary are not whole; empty where they are
    bytes       BIGINT NOT NULL, -- of removed and summary
    removed     BYTEA  NOT NULL, -- from the conversation, compressed
    summary     BYTEA  NOT NULL, -- in its place, compressed
    PRIMARY KEY (feature_uid, sequence)
);
CREATE INDEX steering_at ON steering (feature_uid, at);

-- +goose Down
DROP TABLE steering;
