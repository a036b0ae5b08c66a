// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// Validate says which values of the rules cannot be used, each with its path and what would do. Patterns are not looked
// at: they are the judge's. Most of it the API refuses by itself; sizes are quantities there and can be anything.
func (r *Rules) Validate() error {
	x := &r.Execution
	return errors.Join(
		oneOf("execution.mode", x.Mode, ModeInteractive, ModeDeterministic),
		oneOf("execution.strategy", x.Strategy, StrategyDirect, StrategyShadow),
		oneOf("execution.promotion", x.Promotion, PromotionAtomic, PromotionIncremental),
		oneOf("execution.revertOnViolation", x.RevertOnViolation, RevertNone, RevertViolatingPaths, RevertFull),
		positive("execution.checkpoint.interval", x.Interval),
		notNegative("execution.checkpoint.minInterval", x.MinInterval),
		positive("execution.checkpoint.maxChanges", x.MaxChanges),
		positive("execution.checkpoint.pauseTimeout", x.PauseTimeout),
		oneOf("paths.severity", r.PathSeverity, Info, Warning, Error, Critical),
		pathRules("paths.rules", r.PathRules),
		positive("changes.maxFiles", r.MaxFiles),
		positive("changes.maxLines", r.MaxLines),
		positive("changes.maxFileSize", r.MaxFileSize),
		positive("changes.maxWorkspaceSize", r.MaxWorkspaceSize),
		positive("changes.maxWorkspaceFiles", r.MaxWorkspaceFiles),
		oneOf("changes.symlinks", r.Symlinks, Allow, Warn, Deny),
		oneOf("changes.specialFiles", r.SpecialFiles, Allow, Warn, Deny),
		oneOf("changes.hardlinks", r.Hardlinks, Allow, Warn, Deny),
		oneOf("changes.executables", r.Executables, Allow, Warn, Deny),
		oneOf("changes.binaries", r.Binaries, Allow, Warn, Deny),
		oneOf("changes.secrets", r.Secrets, Allow, Warn, Deny),
		oneOf("changes.confusables", r.Confusables, Allow, Warn, Deny),
		oneOf("changes.unportableNames", r.UnportableNames, Allow, Warn, Deny),
		oneOf("changes.hiddenCharacters", r.HiddenCharacters, Allow, Warn, Deny),
		oneOf("changes.strayLinks", r.StrayLinks, Allow, Warn, Deny),
		checkSeverities("checks", r.Checks),
		positive("breaker.maxCheckpointFailures", r.MaxCheckpointFailures),
		oneOf("concurrency.locks", r.Locks, Wait, Fail),
		oneOf("concurrency.overlap", r.Overlap, OverlapAllow, OverlapWarn, OverlapWait),
		oneOf("delivery.approval", r.Approval, ApprovalNone, ApprovalRequired),
		positive("capacity.maxRunning", r.MaxRunning),
		positive("retention.checkpoints", r.KeepCheckpoints),
		positive("retention.unpromotedBytes", r.UnpromotedBytes),
		oneOf("isolation", r.Isolation, IsolationWarn, IsolationEnforce),
		oneOf("delivery.history", r.History, HistorySquash, HistoryHold),
		validHosts("egress.git", r.GitHosts),
		validHosts("egress.agent", r.AgentHosts),
	)
}

func oneOf[T ~string](name string, got T, known ...T) error {
	if got == "" || slices.Contains(known, got) {
		return nil
	}
	return fmt.Errorf("%s: %q is not one of %v", name, got, known)
}

// pathRules refuses rules without an access or without paths: they would say nothing.
func pathRules(name string, list []PathRule) error {
	var errs []error
	for i, r := range list {
		if r.Access != Write && r.Access != ReadOnly {
			errs = append(errs, fmt.Errorf("%s[%d].access: %q is not one of %v", name, i, r.Access, []Access{Write, ReadOnly}))
		}
		if len(r.Paths) == 0 {
			errs = append(errs, fmt.Errorf("%s[%d].paths: at least one is needed", name, i))
		}
	}
	return errors.Join(errs...)
}

func checkSeverities(name string, list []Check) error {
	var errs []error
	for _, c := range list {
		errs = append(errs, oneOf(name+"."+c.Name+".severity", c.Severity, Info, Warning, Error, Critical))
	}
	return errors.Join(errs...)
}

func positive[T cmp.Ordered](name string, got *T) error {
	var zero T
	if got == nil || *got > zero {
		return nil
	}
	return fmt.Errorf("%s: %v must be more than 0", name, *got)
}

func notNegative[T cmp.Ordered](name string, got *T) error {
	var zero T
	if got == nil || *got >= zero {
		return nil
	}
	return fmt.Errorf("%s: %v must not be negative", name, *got)
}

func validHosts(name string, list []Host) error {
	var errs []error
	for _, h := range list {
		if h.Name == "" || h.Port < 0 || h.Port > 65535 {
			errs = append(errs, fmt.Errorf("%s: host %q with port %d: a name and a port from 1 to 65535 are needed", name, h.Name, h.Port))
		}
	}
	return errors.Join(errs...)
}
