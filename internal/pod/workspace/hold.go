// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"context"
	"errors"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// quietTries is how often a workspace that moves is looked at again before the agent is frozen, or given up where there
// is no agent to freeze.
const quietTries = 2

// freezeTries is how often the agent is frozen for one capture where something changed unnoticed.
const freezeTries = 2

// Why a snapshot is unsettled.
var (
	errWritten   = errors.New("a process has it open for writing although no agent runs")
	errUnnoticed = errors.New("it changed before the freeze without being noticed")
)

// holder decides when what a capture sees is one moment of the workspace, and holds the agent still where nothing else proves it.
type holder struct {
	*capture

	still Still
}

// hold captures the workspace at one moment: without freezing where that proves possible, else with.
func (h holder) hold() error {
	e := h.engine
	h.snapshot.At = e.options.Now()
	// If signatures are not reliable, it reads every file.
	all := !e.assumptions.ChangeTime || !e.assumptions.MappedWrites || !e.assumptions.Leases
	if !h.still.AtOnce || h.still.Freezer == nil {
		scanned, err := h.preview(all)
		if err != nil {
			return err
		}
		// A file with a live writer needs the freeze in any case. What has to be scanned for the truth is then scanned after
		// it, once: see verify.
		if scanned || h.writer == "" || h.still.Freezer == nil {
			settled, err := h.quiet(h.still.Freezer != nil)
			if err != nil || settled {
				return err
			}
		}
	}
	if h.still.Freezer == nil {
		reason := "the workspace changes although no agent runs"
		if h.writer != "" {
			reason = describe(h.writer, errWritten)
		}
		h.unsettle(reason)
		return nil
	}
	return h.freeze(all)
}

// preview reads what has changed since the last capture, so that little is left to do when the workspace has to hold h.still.
// If the watcher followed everything, its report is enough here: a scan for truth comes after it in any case. Scanned tells
// whether this was one.
func (h holder) preview(all bool) (scanned bool, err error) {
	if h.followed && !all {
		err := h.relook(h.silent(), h.changed)
		if err == nil {
			return false, h.absorb()
		}
		if !errors.Is(err, errBudget) {
			return false, err
		}
		if err := h.absorb(); err != nil {
			return false, err
		}
	}
	_, err = h.look(all)
	return true, err
}

// quiet looks again until nothing has moved since the look before. Then every file was, at the moment the last look
// began, what was read of it: its signature was the same before and after, and nobody could write without changing it.
// That holds as far as the volume does what is assumed; where it does not, running says that there is an agent to mind.
func (h holder) quiet(running bool) (bool, error) {
	e := h.engine
	certain := !running || e.assumptions.ChangeTime && e.assumptions.Leases
	for range quietTries {
		h.snapshot.At = e.options.Now()
		moved, err := h.look(false)
		if err != nil {
			return false, err
		}
		if h.over {
			h.snapshot.Settled = true
			return true, nil
		}
		sure := certain && (!running || h.uncertain == "")
		if moved == 0 && h.writer == "" && h.scanProblem == "" && h.readProblem == "" && sure {
			h.snapshot.Settled = true
			return true, nil
		}
		if h.writer != "" {
			break
		}
	}
	return false, nil
}

// freeze stops the agent and looks again at what may have moved since the last look. If a scan then finds an earlier change that was not
// noticed, freeze reads it and freezes the agent once more.
func (h holder) freeze(all bool) error {
	for range freezeTries - 1 {
		unnoticed, err := h.freezeOnce(all)
		if err != nil || unnoticed == "" {
			return err
		}
		// What is frozen still holds still now as well.
		if _, err := h.look(false); err != nil {
			return err
		}
		if h.frozen {
			h.conclude()
			return nil
		}
	}
	unnoticed, err := h.freezeOnce(all)
	if err == nil && unnoticed != "" {
		h.unsettle(unnoticed)
	}
	return err
}

// freezeOnce gives what had changed before the freeze without being noticed.
func (h holder) freezeOnce(all bool) (unnoticed string, err error) {
	e := h.engine
	looked := h.silent()
	h.frozen = true
	frozen, failure := h.still.Freezer.Freeze(h.ctx)
	began, frozenAt := e.options.Now(), now()
	h.snapshot.At, h.snapshot.Frozen, h.snapshot.Processes = began, failure == nil, frozen.Processes
	h.reader.frozen = failure == nil && frozen.Settled
	events := h.take()
	partial := events.followed && !h.still.AtOnce && !all && !h.over && h.scanProblem == ""
	if partial {
		if err = h.relook(looked, events.paths); errors.Is(err, errBudget) {
			partial, err = false, h.absorb()
		}
	}
	if !partial && err == nil {
		_, err = h.look(all && h.still.AtOnce || !e.assumptions.ChangeTime)
	}
	if err != nil {
		return "", err
	}
	var broken error
	if !h.still.KeepFrozen {
		broken = h.thaw()
	}
	h.snapshot.FrozenFor += e.options.Now().Sub(began)
	h.reader.frozen = false
	if err := h.absorb(); err != nil {
		return "", err
	}
	switch {
	case failure != nil:
		h.unsettle("the agent could not be frozen: " + failure.Error())
	case !frozen.Settled:
		h.unsettle("the agent could not be frozen: " + frozen.Reason)
	case broken != nil:
		h.unsettle("the freeze did not hold: " + broken.Error())
	default:
		h.conclude()
		if partial && h.snapshot.Settled {
			return h.verify(frozenAt, looked)
		}
	}
	return "", nil
}

// conclude says whether the last look, under a freeze, saw everything.
func (h holder) conclude() {
	h.snapshot.Settled = h.scanProblem == "" && h.readProblem == "" || h.over
	if !h.snapshot.Settled {
		h.unsettle("")
	}
}

// thaw resumes the agent, also when the capture was given up. It fails when the freeze did not last until now.
func (h holder) thaw() error {
	if !h.frozen {
		return nil
	}
	h.frozen = false
	return h.still.Freezer.Thaw(context.WithoutCancel(h.ctx))
}

// release thaws what is still frozen, unless the caller continues with a frozen agent.
func (h holder) release(failed bool) {
	if !failed && h.still.KeepFrozen {
		return
	}
	if err := h.thaw(); err != nil {
		h.engine.options.Logger.WarnContext(h.ctx, "Cannot thaw the agent; the runner does so by itself", "error", err)
	}
}

// unsettle says why the snapshot is not one state of the workspace.
func (h holder) unsettle(reason string) {
	h.snapshot.Settled = false
	for _, problem := range []string{h.scanProblem, h.readProblem} {
		if problem != "" {
			reason = problem
			break
		}
	}
	h.snapshot.Reason = reason
}

// silent lists what changes without an event: files with a live writer, with other names, or not read so far. It is made
// before the freeze, because it takes longer the more files there are.
func (c *capture) silent() map[string]reading {
	silent := make(map[string]reading)
	c.known.marked("", again|linked, func(path string, n *node) {
		silent[path] = reading{path: path, captured: n.mark&(ignored|outside) == 0 && n.sig.isRegular(), old: *n}
	})
	return silent
}

// relook looks only at what may have changed since the last look: what changes without an event, to which it adds what an
// event told of. What it reads is still to be absorbed.
func (c *capture) relook(looked map[string]reading, changed []string) error {
	c.forget()
	c.budget, c.spent = c.limits.MaxBytes, 0
	defer func() { c.budget = 0 }()
	c.closer = c.closer[:0]
	wanted := make([]reading, 0, len(looked)+len(changed))
	add := func(r reading) {
		if r.captured {
			wanted = append(wanted, r)
		} else {
			c.closer = append(c.closer, r.path)
		}
	}
	for _, r := range looked {
		add(r)
	}
	for _, path := range changed {
		if _, found := looked[path]; found {
			continue
		}
		r := reading{path: path}
		if n := c.known.lookup(path); n != nil && n.sub == nil && n.mark&(ignored|outside) == 0 && n.sig.isRegular() {
			r.captured, r.old = true, *n
			r.old.mark |= unread // see distrust
		}
		looked[path] = r
		add(r)
	}
	if err := c.gather(wanted); err != nil {
		return err
	}
	s := c.scanner()
	err := c.relookFolders(s, c.closer)
	if err != nil && !errors.Is(err, errTooMany) {
		return err
	}
	c.scanProblem = s.problem
	if most := c.limits.MaxFiles; err != nil || most > 0 && int64(len(wanted)+len(s.dirty)) > most {
		s.dirty = nil
		return errors.Join(c.edit(s), errBudget)
	}
	return c.edit(s)
}

// relookFolders looks at paths directory by directory.
func (c *capture) relookFolders(s *scanner, paths []string) error {
	byFolder := make(map[string][]string)
	for _, path := range paths {
		i := strings.LastIndexByte(path, '/')
		folder := path[:max(i, 0)]
		byFolder[folder] = append(byFolder[folder], path[i+1:])
	}
	folders := make([]string, 0, len(byFolder))
	for path := range byFolder {
		folders = append(folders, path)
	}
	// The upper ones first: what appears in them is looked at as a whole.
	slices.Sort(folders)
	for _, path := range folders {
		if err := c.relookFolder(s, path, byFolder[path]); err != nil {
			return err
		}
	}
	return nil
}

// relookParent looks at one path, and all below it.
func (c *capture) relookParent(s *scanner, path string) error {
	i := strings.LastIndexByte(path, '/')
	return c.relookFolder(s, path[:max(i, 0)], []string{path[i+1:]})
}

// relookFolder looks at some names of one directory.
func (c *capture) relookFolder(s *scanner, path string, names []string) error {
	known := c.known
	base := c.engine.base
	if path != "" {
		n := c.known.lookup(path)
		if n == nil || n.sub == nil {
			// Not captured, or new: then it is a name to look at in the directory above.
			return nil
		}
		known = n.sub
		base = nil
		if b := c.engine.base.Lookup(path); b != nil {
			base = b.Tree
		}
	}
	at := place{prefix: path, base: base, depth: strings.Count(path, "/") + 1}
	if path != "" {
		at.prefix += "/"
	}
	d, err := c.engine.root.sub("./" + path)
	switch {
	case isDenied(err):
		c.deny(path)
		return nil
	case vanished(err):
		return nil
	case err != nil:
		s.trouble(path, err)
		return nil
	}
	at.dir = d
	defer func() { at.dir.close() }()
	list := s.level(at.depth)
	list.reset()
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		list.add([]byte(name))
	}
	list.look(d)
	result, err := s.compare(&at, known, list, false)
	if err != nil {
		return err
	}
	c.known = c.known.replace(c.owner, path, result)
	return nil
}

// inProgress tells whether a file that the freeze found in one state and a later look in another is being changed right
// now, or not at all. A frozen process is in no system call, so a change from before the freeze is whole and has its own
// ctime; while one is made, file systems show some of it (the size of a file that is cut short) before the new ctime.
func inProgress(frozen, now signature) bool {
	return frozen.inode == now.inode && frozen.ctime == now.ctime
}

// deny marks the directory that keeps a path from being opened.
func (c *capture) deny(path string) {
	for end := 0; end < len(path); {
		next := strings.IndexByte(path[end+1:], '/')
		above := path[:end]
		if end = len(path); next >= 0 {
			end = len(above) + 1 + next
		}
		fd, err := c.engine.root.open(path[:end], unix.O_PATH, 0)
		switch {
		case isDenied(err) && above == "":
			c.closed = true
			return
		case isDenied(err):
			c.setMark(above, denied)
			return
		case err != nil:
			return
		}
		dir{fd}.close()
		if d, err := c.engine.root.sub("./" + path[:end]); err == nil {
			d.close()
		} else if isDenied(err) {
			c.setMark(path[:end], denied)
			return
		}
	}
}
