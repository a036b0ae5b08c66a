// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/tidewaiter/tidewaiter/internal/pod/durable"
	"github.com/tidewaiter/tidewaiter/internal/pod/objects"
)

// knownFile, in the scratch directory, is what one process leaves to the next of what it knows of the workspace.
const knownFile = "known"

// memoir is the head of that file: one line of JSON, which the signatures follow.
type memoir struct {
	Version int `json:"version"`
	// Boot of the machine: after a crash of it, files may lack what was written to them and bear the signature all the same.
	Boot string `json:"boot"`
	// Inode of the workspace's root.
	Inode uint64 `json:"inode"`
	// Base decides what is ignored; Tree has the content of everything that is known.
	Base string `json:"base"`
	Tree string `json:"tree"`
	// Trusted says that the volume was tested, and that every change there changes a signature.
	Trusted bool   `json:"trusted"`
	Sum     string `json:"sum"`
}

// memoirVersion changes with the format and the meaning of what is kept.
const memoirVersion = 1

// Remember stores what the engine knows of the workspace for the engine that opens next, which may Recall it. Call it after the workspace
// is prepared, and before the agent starts.
func (e *Engine) Remember() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	path := filepath.Join(e.options.Scratch, knownFile)
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
		return fmt.Errorf("remember the workspace: %w", err)
	}
	if e.closed || e.base == nil || !e.captured {
		return nil
	}
	m, err := e.memoir()
	if err != nil || !m.Trusted || m.Boot == "" {
		return err
	}
	body := appendFolder(nil, e.known)
	m.Sum = fmt.Sprintf("%x", sha256.Sum256(body))
	head, err := json.Marshal(m)
	if err == nil {
		err = durable.Replace(path, append(append(head, '\n'), body...))
	}
	if err != nil {
		return fmt.Errorf("remember the workspace: %w", objects.WrapFull(err))
	}
	return nil
}

// memoir describes the engine's workspace as it is now.
func (e *Engine) memoir() (memoir, error) {
	root, err := fstat(e.root.fd)
	if err != nil {
		return memoir{}, err
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		boot = nil // not to be told from another one: nothing is remembered
	}
	a := e.assumptions
	return memoir{
		Version: memoirVersion, Boot: strings.TrimSpace(string(boot)), Inode: root.inode, Base: e.base.ID.String(), Tree: e.tree.ID.String(),
		Trusted: a.ChangeTime && a.MappedWrites,
	}, nil
}

// Recall takes over the state that the previous engine has stored, once: this engine then does not read files again whose signature is
// unchanged. It is false if there is no reliable state: the engine then reads everything. Call it after Reset.
func (e *Engine) Recall(ctx context.Context) (bool, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return false, ErrClosed
	}
	if e.base == nil {
		return false, errNoBase
	}
	path := filepath.Join(e.options.Scratch, knownFile)
	content, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return false, nil
	}
	if err == nil {
		// An engine that is opened later, next to an agent that has been at work meanwhile, must not find it.
		err = errors.Join(os.Remove(path), durable.SyncDir(e.options.Scratch))
	}
	if err != nil {
		return false, fmt.Errorf("recall the workspace: %w", err)
	}
	return e.recall(ctx, content)
}

func (e *Engine) recall(ctx context.Context, content []byte) (bool, error) {
	head, body, _ := bytes.Cut(content, []byte{'\n'})
	var was memoir
	if err := json.Unmarshal(head, &was); err != nil || was.Sum != fmt.Sprintf("%x", sha256.Sum256(body)) {
		return false, nil //nolint:nilerr // what cannot be read is not remembered: everything is hashed
	}
	now, err := e.memoir()
	if err != nil {
		return false, err
	}
	now.Tree, now.Sum = was.Tree, was.Sum
	if was != now || !now.Trusted || now.Boot == "" {
		return false, nil
	}
	known, err := readFolder(bytes.NewReader(body), 0)
	if err != nil {
		return false, nil //nolint:nilerr // what cannot be read is not relied on
	}
	if was.Tree != e.tree.ID.String() {
		id, err := objects.ParseID(was.Tree)
		if err != nil {
			return false, nil //nolint:nilerr // as above
		}
		tree, err := e.options.Repository.Tree(ctx, id)
		if err != nil {
			return false, fmt.Errorf("recall the workspace: %w", err)
		}
		tree.Share(e.base)
		e.tree, e.stored = tree, newIDSet(e.base, tree)
	}
	e.known, e.recorded, e.captured = known, known, true
	return true, nil
}

// appendFolder writes a folder: the count of its nodes, and for each its name, mark, signature and whether a folder follows.
func appendFolder(b []byte, f *folder) []byte {
	if f == nil {
		return binary.AppendUvarint(b, 0)
	}
	b = binary.AppendUvarint(b, uint64(len(f.nodes)))
	for i := range f.nodes {
		n := &f.nodes[i]
		b = binary.AppendUvarint(b, uint64(len(n.name)))
		b = append(b, n.name...)
		isFolder := byte(0)
		if n.sub != nil {
			isFolder = 1
		}
		b = append(b, byte(n.mark), isFolder)
		for _, v := range []int64{int64(n.sig.inode), n.sig.size, n.sig.mtime, n.sig.ctime, int64(n.sig.mode), int64(n.sig.links)} {
			b = binary.AppendVarint(b, v)
		}
		if n.sub != nil {
			b = appendFolder(b, n.sub)
		}
	}
	return b
}

var errMemoir = errors.New("what was remembered cannot be read")

func readFolder(r *bytes.Reader, depth int) (*folder, error) {
	count, err := binary.ReadUvarint(r)
	// A node has at least ten bytes.
	if err != nil || count > uint64(r.Len()) || depth > maxDepth {
		return nil, errMemoir
	}
	f := &folder{nodes: make([]node, count)}
	for i := range f.nodes {
		if err := f.nodes[i].read(r, depth); err != nil {
			return nil, err
		}
	}
	return f, nil
}

func (n *node) read(r *bytes.Reader, depth int) error {
	size, err := binary.ReadUvarint(r)
	if err != nil || size > uint64(r.Len()) {
		return errMemoir
	}
	name := make([]byte, size+2)
	if _, err := io.ReadFull(r, name); err != nil {
		return errMemoir
	}
	n.name, n.mark = string(name[:size]), mark(name[size])
	var v [6]int64
	for i := range v {
		if v[i], err = binary.ReadVarint(r); err != nil {
			return errMemoir
		}
	}
	n.sig = signature{inode: uint64(v[0]), size: v[1], mtime: v[2], ctime: v[3], mode: uint16(v[4]), links: uint16(v[5])}
	if name[size+1] == 1 {
		n.sub, err = readFolder(r, depth+1)
	}
	return err
}
