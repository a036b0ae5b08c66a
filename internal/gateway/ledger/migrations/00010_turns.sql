-- Turns as watchdogs count them, for several calls of which one may stand.

-- +goose Up
-- Nothing writes or reads tasks any more. It stays for replicas of the version before.
DROP INDEX interactions_turn;
CREATE INDEX interactions_turn ON interactions (feature_uid, attempt, task, turn);

-- +goose Down
DROP INDEX interactions_turn;
UPDATE interactions SET turn = sequence;
DELETE FROM tasks;
INSERT INTO tasks (feature_uid, attempt, task, turns) SELECT feature_uid, attempt, task, MAX(sequence) FROM interactions GROUP BY feature_uid, attempt, task;
CREATE UNIQUE INDEX interactions_turn ON interactions (feature_uid, attempt, task, turn);
