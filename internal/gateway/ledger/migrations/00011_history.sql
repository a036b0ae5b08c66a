-- What happened in Features: attempts, plans, tasks, gates, questions and answers.

-- +goose Up
CREATE TABLE history (
    feature_uid TEXT   NOT NULL,
    sequence    BIGINT NOT NULL,
    at          BIGINT NOT NULL,
    attempt     BIGINT NOT NULL,
    kind        TEXT   NOT NULL,
    event       TEXT   NOT NULL,
    cause       TEXT   NOT NULL,
    task        TEXT   NOT NULL,
    name        TEXT   NOT NULL,
    tree        TEXT   NOT NULL,
    duration    BIGINT NOT NULL, -- milliseconds
    exit_code   BIGINT NOT NULL,
    message     TEXT   NOT NULL,
    missing     TEXT   NOT NULL, -- why the text is not whole; empty where it is
    bytes       BIGINT NOT NULL, -- of the text
    text        BYTEA  NOT NULL, -- compressed
    PRIMARY KEY (feature_uid, sequence)
);
CREATE INDEX history_at ON history (feature_uid, at);

-- +goose Down
DROP TABLE history;
