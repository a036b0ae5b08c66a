// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package runstatus

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

const (
	// maxReports bounds a batch.
	maxReports = 256
	// maxRequestID bounds the id of a request in bytes, as the API does.
	maxRequestID = 63
)

// Refusal is a report, or a batch, that cannot be applied, now or ever.
type Refusal struct {
	// Report that is refused; zero if it is the batch.
	Report protocol.ReportAck
	// TooLarge: it has more than protocol.MaxReportBytes. Nobody has read which reports it has.
	TooLarge bool
	// Reason names the field.
	Reason string
}

// Code is the HTTP status of an answer that says so.
func (e *Refusal) Code() int {
	const badRequest, contentTooLarge = 400, 413
	if e.TooLarge {
		return contentTooLarge
	}
	return badRequest
}

// Error names the report and the field.
func (e *Refusal) Error() string {
	if e.Report == (protocol.ReportAck{}) {
		return e.Reason
	}
	return fmt.Sprintf("report %d of epoch %d: %s", e.Report.Sequence, e.Report.Epoch, e.Reason)
}

// Receive reads a batch from a request, up to its limit, and then as Decode does.
func Receive(body io.Reader) ([]protocol.Report, error) {
	text, err := io.ReadAll(io.LimitReader(body, protocol.MaxReportBytes+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read reports: %w", err)
	case len(text) > protocol.MaxReportBytes:
		return nil, &Refusal{TooLarge: true, Reason: fmt.Sprintf("the report batch has more than %d bytes", protocol.MaxReportBytes)}
	}
	return Decode(text)
}

// Decode reads a batch and checks everything about it that does not depend on the Feature: what comes out can be folded
// and stored. Fields that this version does not know are ignored, as the protocol has it. When one report is bad, those
// before it are given together with the error.
func Decode(body []byte) ([]protocol.Report, error) {
	var batch protocol.ReportBatch
	decoder := json.NewDecoder(bytes.NewReader(body))
	if err := decoder.Decode(&batch); err != nil {
		return nil, &Refusal{Reason: "not a report batch: " + Clean(err.Error(), maxMessage)}
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, &Refusal{Reason: "there is data after the report batch"}
	}
	switch {
	case batch.Version != protocol.Version:
		return nil, &Refusal{Reason: fmt.Sprintf("version %d is not supported, only %d", batch.Version, protocol.Version)}
	case len(batch.Reports) == 0:
		return nil, &Refusal{Reason: "reports is empty"}
	case len(batch.Reports) > maxReports:
		return nil, &Refusal{Reason: fmt.Sprintf("reports has %d entries, more than %d", len(batch.Reports), maxReports)}
	}
	var before protocol.Report
	for i, r := range batch.Reports {
		if err := validate(r, before); err != nil {
			return batch.Reports[:i], &Refusal{Report: protocol.ReportAck{Epoch: r.Epoch, Sequence: r.Sequence}, Reason: err.Error()}
		}
		before = r
	}
	return batch.Reports, nil
}

func validate(r, before protocol.Report) error {
	set := 0
	for _, present := range []bool{r.Status != nil, r.Checkpoint != nil, r.Request != nil, r.Final != nil, r.Acknowledged != nil, r.Failed != nil, r.Planned != nil, r.Knowledge != nil} {
		if present {
			set++
		}
	}
	switch {
	case r.Epoch < 1 || r.Sequence < 1:
		return errors.New("epoch and sequence count from 1")
	case r.Epoch < before.Epoch || r.Epoch == before.Epoch && r.Sequence <= before.Sequence:
		return fmt.Errorf("it follows report %d of epoch %d: the order is by epoch and sequence", before.Sequence, before.Epoch)
	case set != 1:
		return fmt.Errorf("exactly one of status, checkpoint, request, final, acknowledged, failed, planned and knowledge must be set, not %d", set)
	case r.Time.IsZero() || r.Time.Year() > 9999:
		return errors.New("time is missing or no time")
	case r.Status != nil:
		return validateStatus(*r.Status)
	case r.Checkpoint != nil:
		return validateCheckpoint(*r.Checkpoint)
	case r.Acknowledged != nil:
		return validateAcknowledged(*r.Acknowledged)
	case r.Failed != nil && r.Failed.Reason == "":
		return errors.New("failed.reason is missing")
	case r.Request != nil && (r.Request.ID == "" || len(r.Request.ID) > maxRequestID):
		return fmt.Errorf("request.id is missing or longer than %d bytes", maxRequestID)
	case r.Knowledge != nil:
		return validateKnowledge(*r.Knowledge)
	case r.Planned != nil:
		return validatePlanned(*r.Planned)
	case r.Final != nil:
		return errors.Join(
			oneOf("final.outcome", r.Final.Outcome, protocol.Outcomes()...),
			hash("final.head", r.Final.Head), digest("final.gate", r.Final.Gate), digest("final.provedBy", r.Final.ProvedBy), validatePaths(*r.Final), validateFailures(*r.Final), validateQuestion("final.question", r.Final.Question))
	}
	return nil
}

func validateQuestion(where string, q *protocol.Question) error {
	if q != nil && (q.ID == "" || q.Text == "") {
		return fmt.Errorf("%s has no id or no text", where)
	}
	if q != nil && q.At.Year() > 9999 {
		return fmt.Errorf("%s.at is not a time", where)
	}
	return nil
}

func validateFailures(r protocol.FinalReport) error {
	if r.TaskFailures < 0 || r.TaskFailures > maxTaskFailures {
		return fmt.Errorf("final.taskFailures is not between 0 and %d", maxTaskFailures)
	}
	f := r.Failure
	if f == nil {
		return nil
	}
	if f.Calls < 0 || f.Calls > maxNumber {
		return errors.New("final.failure.calls is not a number of calls")
	}
	return oneOf("final.failure.class", f.Class, protocol.FailureClasses()...)
}

func validatePaths(f protocol.FinalReport) error {
	if f.PathCount < int64(len(f.Paths)) {
		return errors.New("final.pathCount is less than the paths that are listed")
	}
	return nil
}

func validateCheckpoint(c protocol.CheckpointReport) error {
	for i, v := range c.Violations {
		field := fmt.Sprintf("checkpoint.violations[%d]", i)
		if v.Rule == "" || v.Message == "" {
			return errors.New(field + " has no rule or no message")
		}
		if err := severity(field+".severity", v.Severity); err != nil {
			return err
		}
	}
	if c.Severity != "" {
		if err := severity("checkpoint.severity", c.Severity); err != nil {
			return err
		}
	}
	if b := c.Rollback; b != nil {
		if err := oneOf("checkpoint.rollback.cause", b.Cause, protocol.RollbackBySupervision, protocol.RollbackByRequest, protocol.RollbackByViolation); err != nil {
			return err
		}
		if b.To < 0 || b.To >= c.Sequence {
			return errors.New("checkpoint.rollback.to must be a number before checkpoint.sequence")
		}
	}
	switch {
	case c.Sequence < 1:
		return errors.New("checkpoint.sequence counts from 1")
	case c.Previous < 0 || c.Previous >= c.Sequence:
		return errors.New("checkpoint.previous must be a number before checkpoint.sequence")
	case c.CapturedAt.IsZero() || c.CapturedAt.Year() > 9999:
		return errors.New("checkpoint.capturedAt is missing or no time")
	case min(c.Added, c.Modified, c.Deleted, c.TypeChanged, c.LinesAdded, c.LinesDeleted, c.ViolationCount) < 0:
		return errors.New("checkpoint has a negative count")
	case c.Processes < 0 || c.Processes > math.MaxInt32:
		return errors.New("checkpoint.processes is not a count")
	}
	return errors.Join(
		oneOf("checkpoint.trigger", c.Trigger, protocol.TriggerInterval, protocol.TriggerChanges, protocol.TriggerTask, protocol.TriggerRequested, protocol.TriggerFinal, protocol.TriggerPatch, protocol.TriggerSteering),
		oneOf("checkpoint.verdict", c.Verdict, protocol.Valid, protocol.Invalid, protocol.Skipped),
		oneOf("checkpoint.action", c.Action, protocol.ActionPromoted, protocol.ActionPartlyPromoted, protocol.ActionHeld, protocol.ActionReverted, protocol.ActionNone),
		hash("checkpoint.commit", c.Commit), hash("checkpoint.tree", c.Tree), hash("checkpoint.base", c.Base), hash("checkpoint.deliveryCommit", c.DeliveryCommit))
}

func severity(field string, value policy.Severity) error {
	return oneOf(field, value, policy.Info, policy.Warning, policy.Error, policy.Critical)
}

func oneOf[S ~string](field string, value S, allowed ...S) error {
	if slices.Contains(allowed, value) {
		return nil
	}
	words := make([]string, 0, len(allowed))
	for _, a := range allowed {
		words = append(words, string(a))
	}
	return fmt.Errorf("%s %q is not one of %s", field, Clean(string(value), maxName), strings.Join(words, ", "))
}

var objectID = regexp.MustCompile(`^([0-9a-f]{40})?$`)

// digest is a SHA-256 in hexadecimal, or empty.
func digest(field, value string) error {
	if len(value) == 0 || len(value) == 64 && strings.Trim(value, "0123456789abcdef") == "" {
		return nil
	}
	return fmt.Errorf("%s is not 64 hexadecimal digits", field)
}

func hash(field, value string) error {
	if objectID.MatchString(value) {
		return nil
	}
	return fmt.Errorf("%s is not 40 hexadecimal digits", field)
}
