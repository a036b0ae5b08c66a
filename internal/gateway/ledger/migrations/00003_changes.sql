-- What checkpoints have changed, and how long the ledger keeps what it has of a Feature.

-- +goose Up
CREATE TABLE features (
    uid       TEXT   NOT NULL PRIMARY KEY,
    namespace TEXT   NOT NULL,
    feature   TEXT   NOT NULL,
    keep      BIGINT NOT NULL, -- nanoseconds
    bytes     BIGINT NOT NULL  -- that its rows in changes take
);
CREATE INDEX features_namespace ON features (namespace);
-- 720h, which was kept of all.
INSERT INTO features (uid, namespace, feature, keep, bytes)
SELECT feature_uid, MIN(namespace), MIN(feature), 2592000000000000, 0 FROM interactions GROUP BY feature_uid;

DROP INDEX interactions_at;
CREATE INDEX interactions_at ON interactions (feature_uid, at);

CREATE TABLE changes (
    feature_uid TEXT   NOT NULL,
    checkpoint  BIGINT NOT NULL,
    at          BIGINT NOT NULL,
    previous    BIGINT NOT NULL,
    task        TEXT   NOT NULL,
    verdict     TEXT   NOT NULL,
    action      TEXT   NOT NULL,
    files       BIGINT NOT NULL, -- that were changed
    listed      BIGINT NOT NULL, -- files in names
    missing     TEXT   NOT NULL, -- why the patch is not whole; empty where it is
    bytes       BIGINT NOT NULL, -- of names and patch
    names       BYTEA  NOT NULL, -- JSON, compressed
    patch       BYTEA  NOT NULL, -- compressed
    PRIMARY KEY (feature_uid, checkpoint)
);
CREATE INDEX changes_at ON changes (feature_uid, at);

-- +goose Down
DROP TABLE changes;
DROP INDEX interactions_at;
CREATE INDEX interactions_at ON interactions (at);
DROP TABLE features;
