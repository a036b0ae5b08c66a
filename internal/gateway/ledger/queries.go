// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

// All statements, for both engines. The tables are in migrations.

// Totals. Those of a scope with periods have one row for each.
const (
	selectTotals = `SELECT input, cached, output, cost, calls FROM totals WHERE scope = $1 AND key = $2 AND period = $3`

	// lockTotals keeps others from the row until the transaction ends.
	lockTotals = `INSERT INTO totals (scope, key, period, input, cached, output, cost, calls) VALUES ($1, $2, $3, 0, 0, 0, 0, 0)
ON CONFLICT (scope, key, period) DO UPDATE SET last = totals.last
RETURNING last`

	// addTotals gives what is used then.
	addTotals = `INSERT INTO totals (scope, key, period, input, cached, output, cost, calls, last, stored) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
ON CONFLICT (scope, key, period) DO UPDATE SET input = totals.input + excluded.input, cached = totals.cached + excluded.cached,
output = totals.output + excluded.output, cost = totals.cost + excluded.cost, calls = totals.calls + excluded.calls, last = totals.last + excluded.last,
stored = totals.stored + excluded.stored
RETURNING input, output, cost`
)

// Reservations, where replicas share them. What is used and what is reserved is read at once: a call that ends meanwhile goes from one to the other.
const (
	selectTaken = `SELECT COALESCE(MAX(t.input), 0), COALESCE(MAX(t.output), 0), COALESCE(MAX(t.cost), 0),
CAST(COALESCE(SUM(r.input), 0) AS BIGINT), CAST(COALESCE(SUM(r.output), 0) AS BIGINT), CAST(COALESCE(SUM(r.cost), 0) AS BIGINT)
FROM (SELECT 1) one LEFT JOIN totals t ON t.scope = $1 AND t.key = $2 AND t.period = $3
LEFT JOIN reservations r ON r.until > $4 AND r.id <> $5`

	selectTakenByFeature = selectTaken + ` AND r.feature_uid = $2`
	selectTakenByProject = selectTaken + ` AND r.namespace = $2`

	upsertReservation = `INSERT INTO reservations (id, feature_uid, namespace, input, output, cost, until) VALUES ($1, $2, $3, $4, $5, $6, $7)
ON CONFLICT (id) DO UPDATE SET feature_uid = excluded.feature_uid, namespace = excluded.namespace, input = excluded.input, output = excluded.output,
cost = excluded.cost, until = excluded.until`

	deleteReservation = `DELETE FROM reservations WHERE id = $1`
)

// Interactions.
const (
	columns = `id, at, feature_uid, namespace, feature, attempt, task, turn, sequence, dialect, backend, model_asked, model, role,
request_digest, request_bytes, template_hash, answer_bytes, violations, retries, input, output, cached, cost, status, reason, first_byte, duration,
writes, long_writes, searches, estimated, output_limit`

	insertInteraction = `INSERT INTO interactions (` + columns + `, raw, formatted, results)
VALUES ($1, $2, $3, $4, $5, $6, $7, $35, $8, $9, $10, $11, $12, $13,
$14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26, $27, $28, $29, $30, $31, $32, $33, $34, $36)
ON CONFLICT (id) DO NOTHING`

	columnsWithNotes = columns + `, COALESCE(notes.count, 1), COALESCE(notes.detail, ''),
COALESCE(notes.fetches, 0), COALESCE(notes.executions, 0), COALESCE(notes.file_searches, 0), COALESCE(notes.images, 0), COALESCE(notes.connectors, 0)`
	withNotes = ` FROM interactions LEFT JOIN notes ON notes.call = interactions.id WHERE feature_uid = $1 AND sequence `

	selectTurns = `SELECT ` + columnsWithNotes + withNotes + `> $2 ORDER BY sequence LIMIT $3`
	selectTurn  = `SELECT ` + columnsWithNotes + `, raw, formatted, results` + withNotes + `= $2`
)

// Notes of calls, and of rows that stand for many refused ones.
const (
	selectNote = `SELECT count, detail FROM notes WHERE call = $1`
	upsertNote = `INSERT INTO notes (call, count, detail, fetches, executions, file_searches, images, connectors) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
ON CONFLICT (call) DO UPDATE SET count = excluded.count, detail = excluded.detail`
	moveTurn = `UPDATE interactions SET at = $2 WHERE id = $1`
)

// Pins.
const (
	selectPin = `SELECT pins.terms, templates.text FROM pins JOIN templates ON templates.hash = pins.template
WHERE pins.feature_uid = $1 AND pins.attempt = $2 AND pins.task = $3`

	insertTemplate = `INSERT INTO templates (hash, text) VALUES ($1, $2) ON CONFLICT (hash) DO NOTHING`

	insertPin = `INSERT INTO pins (feature_uid, attempt, task, at, terms, template) VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (feature_uid, attempt, task) DO NOTHING`
)

// Changes of checkpoints.
const (
	insertCheckpoint = `INSERT INTO changes (feature_uid, checkpoint, at, previous, task, verdict, action, files, listed, missing, bytes, names, patch)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13) ON CONFLICT (feature_uid, checkpoint) DO NOTHING`

	// selectChanges of a checkpoint, or of the newest for 0.
	selectChanges = `SELECT checkpoint, at, previous, task, verdict, action, files, missing, names, patch FROM changes
WHERE feature_uid = $1 AND (checkpoint = $2 OR $2 = 0) ORDER BY checkpoint DESC LIMIT 1`

	selectNames = `SELECT checkpoint, at, files, names FROM changes WHERE feature_uid = $1 AND checkpoint >= $2 AND files > 0 ORDER BY checkpoint LIMIT $3`

	// selectFree is SQLite's: pages of the file that nothing is in, and the size of each.
	selectFree = `SELECT f.freelist_count, p.page_size FROM pragma_freelist_count f, pragma_page_size p`

	selectProjectBytes = `SELECT CAST(COALESCE(SUM(bytes), 0) AS BIGINT) FROM features WHERE namespace = $1`
)

// Steering of agents. The call that belongs to a step ended after it, as far as clocks agree.
const (
	insertSteering = `INSERT INTO steering (feature_uid, sequence, at, attempt, task, thread, turn, request, anomaly, detector, evidence, rung, ended, message, channel,
missing, bytes, removed, summary)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19) ON CONFLICT (feature_uid, sequence) DO NOTHING`

	steeringColumns = `s.sequence, s.at, s.attempt, s.task, s.thread, s.turn, s.request, s.anomaly, s.detector, s.evidence, s.rung, s.ended, s.message, s.channel, s.missing,
COALESCE((SELECT i.sequence FROM interactions i WHERE s.request <> '' AND i.feature_uid = s.feature_uid AND i.request_digest = s.request
AND i.at BETWEEN s.at - $3 AND s.at + $4 ORDER BY i.at LIMIT 1), 0)`

	selectSteering = `SELECT ` + steeringColumns + ` FROM steering s WHERE s.feature_uid = $1 AND s.sequence > $2 ORDER BY s.sequence LIMIT $5`
	selectStep     = `SELECT ` + steeringColumns + `, s.removed, s.summary FROM steering s WHERE s.feature_uid = $1 AND s.sequence = $2`
)

// History of Features.
const (
	insertHistory = `INSERT INTO history (feature_uid, sequence, at, attempt, kind, event, cause, task, name, tree, duration, exit_code, message, missing, bytes, text)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16) ON CONFLICT (feature_uid, sequence) DO NOTHING`

	historyColumns = `sequence, at, attempt, kind, event, cause, task, name, tree, duration, exit_code, message, missing`

	// selectHistory of a task, or of all for an empty name.
	selectHistory = `SELECT ` + historyColumns + ` FROM history WHERE feature_uid = $1 AND sequence > $2 AND (task = $3 OR $3 = '') ORDER BY sequence LIMIT $4`
	selectEntry   = `SELECT ` + historyColumns + `, text FROM history WHERE feature_uid = $1 AND sequence = $2`
	selectNewest  = `SELECT ` + historyColumns + `, text FROM history WHERE feature_uid = $1 AND kind = $2 AND name = $3 ORDER BY sequence DESC LIMIT 1`
	countHistory  = `SELECT COUNT(*) FROM history WHERE feature_uid = $1 AND sequence <> $2`
)

// Features of which anything is recorded.
const (
	// upsertFeature keeps others from the row until the transaction ends.
	upsertFeature = `INSERT INTO features (uid, namespace, feature, keep, bytes) VALUES ($1, $2, $3, $4, 0)
ON CONFLICT (uid) DO UPDATE SET keep = excluded.keep RETURNING bytes`

	lockFeature     = `UPDATE features SET keep = keep WHERE uid = $1 RETURNING keep`
	addFeatureBytes = `UPDATE features SET bytes = bytes + $2 WHERE uid = $1`
	updateKeep      = `UPDATE features SET keep = $2 WHERE uid = $1`
	selectFeatures  = `SELECT uid, namespace, feature, keep FROM features WHERE uid > $1 ORDER BY uid LIMIT $2`

	sumFeatureBytes = `UPDATE features SET bytes = (SELECT CAST(COALESCE(SUM(changes.bytes), 0) AS BIGINT) FROM changes WHERE feature_uid = $1) +
(SELECT CAST(COALESCE(SUM(steering.bytes), 0) AS BIGINT) FROM steering WHERE feature_uid = $1) +
(SELECT CAST(COALESCE(SUM(history.bytes), 0) AS BIGINT) FROM history WHERE feature_uid = $1) WHERE uid = $1`

	forgetFeature = `DELETE FROM features WHERE uid = $1 AND NOT EXISTS (SELECT 1 FROM interactions WHERE feature_uid = $1)
AND NOT EXISTS (SELECT 1 FROM changes WHERE feature_uid = $1) AND NOT EXISTS (SELECT 1 FROM steering WHERE feature_uid = $1)
AND NOT EXISTS (SELECT 1 FROM history WHERE feature_uid = $1)`
)

// Room. What calls take of it is counted for each Feature.
const (
	// rowBytes of a call: core.RowBytes, and what an agent or a model has chosen.
	rowBytes = `1536 + OCTET_LENGTH(violations) + ` + said
	// said is what is dropped of a call to make room.
	said = `OCTET_LENGTH(raw) + OCTET_LENGTH(formatted) + OCTET_LENGTH(results)`

	selectStored = `SELECT CAST(COALESCE(SUM(f.bytes + COALESCE(t.stored, 0)), 0) AS BIGINT)
FROM features f LEFT JOIN totals t ON t.scope = 'Feature' AND t.key = f.uid AND t.period = ''`

	selectLargest = `SELECT f.uid, f.namespace, f.feature FROM features f JOIN totals t ON t.scope = 'Feature' AND t.key = f.uid AND t.period = ''
WHERE t.stored > 0 ORDER BY t.stored DESC, f.uid LIMIT 1`

	// lockStored keeps others from the row until the transaction ends. Without calls there is none.
	lockStored = `UPDATE totals SET last = last WHERE scope = 'Feature' AND key = $1 AND period = '' RETURNING last, dropped`
	takeStored = `UPDATE totals SET stored = CASE WHEN stored > $2 THEN stored - $2 ELSE 0 END, dropped = $3 WHERE scope = 'Feature' AND key = $1 AND period = ''`

	selectAnswers = `SELECT sequence, ` + said + ` FROM interactions WHERE feature_uid = $1 AND sequence > $2 ORDER BY sequence LIMIT $3`
	dropAnswers   = `UPDATE interactions SET raw = $4, formatted = $5, results = $5 WHERE feature_uid = $1 AND sequence > $2 AND sequence <= $3
AND ` + said + ` > $6`
	dropInteractions = `DELETE FROM interactions WHERE feature_uid = $1 AND sequence IN (
SELECT sequence FROM interactions WHERE feature_uid = $1 ORDER BY sequence LIMIT $2) RETURNING ` + rowBytes
)

// Retention.
const (
	// selectDue says whether anything of a Feature is older than it is kept.
	selectDue = `SELECT EXISTS (SELECT 1 FROM features f WHERE f.uid = $1 AND (
EXISTS (SELECT 1 FROM interactions i WHERE i.feature_uid = $1 AND i.at < $2 - f.keep) OR
EXISTS (SELECT 1 FROM changes c WHERE c.feature_uid = $1 AND c.at < $2 - f.keep) OR
EXISTS (SELECT 1 FROM steering s WHERE s.feature_uid = $1 AND s.at < $2 - f.keep) OR
EXISTS (SELECT 1 FROM history h WHERE h.feature_uid = $1 AND h.at < $2 - f.keep)))`

	expireInteractions = `DELETE FROM interactions WHERE id IN (SELECT id FROM interactions WHERE feature_uid = $1 AND at < $2 ORDER BY at LIMIT $3) RETURNING ` + rowBytes

	expireChanges = `DELETE FROM changes WHERE feature_uid = $1 AND checkpoint IN (
SELECT checkpoint FROM changes WHERE feature_uid = $1 AND at < $2 ORDER BY at LIMIT $3)`

	expireSteering = `DELETE FROM steering WHERE feature_uid = $1 AND sequence IN (
SELECT sequence FROM steering WHERE feature_uid = $1 AND at < $2 ORDER BY at LIMIT $3)`

	expireHistory = `DELETE FROM history WHERE feature_uid = $1 AND sequence IN (
SELECT sequence FROM history WHERE feature_uid = $1 AND at < $2 ORDER BY at LIMIT $3)`

	expireReservations = `DELETE FROM reservations WHERE id IN (SELECT id FROM reservations WHERE until <= $1 ORDER BY until LIMIT $2)`

	// expirePins keeps the pins of tasks that still have a turn.
	expirePins = `DELETE FROM pins WHERE at < $1 AND (feature_uid, attempt, task) IN (
SELECT p.feature_uid, p.attempt, p.task FROM pins p WHERE p.at < $1 AND NOT EXISTS (
SELECT 1 FROM interactions i WHERE i.feature_uid = p.feature_uid AND i.attempt = p.attempt AND i.task = p.task) ORDER BY p.at LIMIT $2)`
)
