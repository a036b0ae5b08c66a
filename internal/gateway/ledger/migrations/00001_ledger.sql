-- The same for both engines: SQLite takes any name for a type, and stores bytes as bytes and integers as integers.

-- +goose Up
CREATE TABLE interactions (
    id             TEXT   NOT NULL PRIMARY KEY,
    at             BIGINT NOT NULL, -- nanoseconds since 1970, as all times
    feature_uid    TEXT   NOT NULL,
    namespace      TEXT   NOT NULL,
    feature        TEXT   NOT NULL,
    attempt        BIGINT NOT NULL,
    task           TEXT   NOT NULL,
    turn           BIGINT NOT NULL,
    sequence       BIGINT NOT NULL,
    dialect        TEXT   NOT NULL,
    backend        TEXT   NOT NULL,
    model_asked    TEXT   NOT NULL,
    model          TEXT   NOT NULL,
    role           TEXT   NOT NULL,
    request_digest TEXT   NOT NULL,
    request_bytes  BIGINT NOT NULL,
    template_hash  TEXT   NOT NULL,
    answer_bytes   BIGINT NOT NULL,
    violations     TEXT   NOT NULL, -- JSON
    retries        BIGINT NOT NULL,
    input          BIGINT NOT NULL,
    output         BIGINT NOT NULL,
    cached         BIGINT NOT NULL,
    cost           BIGINT NOT NULL,
    status         BIGINT NOT NULL,
    reason         TEXT   NOT NULL,
    first_byte     BIGINT NOT NULL,
    duration       BIGINT NOT NULL,
    -- Compressed. Last, so that a list need not read over them.
    raw            BYTEA  NOT NULL,
    formatted      BYTEA  NOT NULL
);
CREATE UNIQUE INDEX interactions_sequence ON interactions (feature_uid, sequence);
CREATE UNIQUE INDEX interactions_turn ON interactions (feature_uid, attempt, task, turn);
CREATE INDEX interactions_at ON interactions (at);

-- How many turns a task has had, also when they are not kept any more.
CREATE TABLE tasks (
    feature_uid TEXT   NOT NULL,
    attempt     BIGINT NOT NULL,
    task        TEXT   NOT NULL,
    turns       BIGINT NOT NULL,
    PRIMARY KEY (feature_uid, attempt, task)
);

-- What was used, so that nothing is summed up when a call is to be made.
CREATE TABLE totals (
    scope  TEXT   NOT NULL,
    key    TEXT   NOT NULL,
    tokens BIGINT NOT NULL,
    cost   BIGINT NOT NULL,
    calls  BIGINT NOT NULL,
    PRIMARY KEY (scope, key)
);

-- What calls may use that have not ended.
CREATE TABLE reservations (
    id          TEXT   NOT NULL PRIMARY KEY,
    feature_uid TEXT   NOT NULL,
    namespace   TEXT   NOT NULL,
    tokens      BIGINT NOT NULL,
    cost        BIGINT NOT NULL,
    until       BIGINT NOT NULL
);
CREATE INDEX reservations_feature ON reservations (feature_uid);
CREATE INDEX reservations_namespace ON reservations (namespace);
CREATE INDEX reservations_until ON reservations (until);

-- Texts of templates, each once.
CREATE TABLE templates (
    hash TEXT  NOT NULL PRIMARY KEY,
    text BYTEA NOT NULL -- compressed
);

-- What applies to a task from its first call on.
CREATE TABLE pins (
    feature_uid TEXT   NOT NULL,
    attempt     BIGINT NOT NULL,
    task        TEXT   NOT NULL,
    at          BIGINT NOT NULL,
    terms       BYTEA  NOT NULL,
    template    TEXT   NOT NULL REFERENCES templates (hash),
    PRIMARY KEY (feature_uid, attempt, task)
);
CREATE INDEX pins_at ON pins (at);

-- +goose Down
DROP TABLE pins;
DROP TABLE templates;
DROP TABLE reservations;
DROP TABLE totals;
DROP TABLE tasks;
DROP TABLE interactions;
