// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"bufio"
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/tidewaiter/tidewaiter/internal/pod/objects"
)

// Objects reads objects through one git process that keeps running, and starts it again if it ends. Its methods are safe for concurrent
// use; they take turns.
type Objects struct {
	runner runner
	// recent blobs are not read from git; may be nil.
	recent *objects.Recent

	mu      sync.Mutex
	process *catFile
}

// catFile is a running `git cat-file --batch-command`.
type catFile struct {
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Reader
	errs *tail
	stop context.CancelFunc
	// room for small contents.
	room []byte
}

// Stat returns kind and size of an object. ErrNoObject says that it is not there.
func (o *Objects) Stat(ctx context.Context, id objects.ID) (objects.Kind, int64, error) {
	var kind objects.Kind
	var size int64
	err := o.ask(ctx, requestFor("info", id), func(p *catFile) (err error) {
		kind, size, err = p.head(id)
		return err
	})
	return kind, size, err
}

// StatAll is Stat for many objects in one request: it calls visit for each in the sequence of ids. Any failure but ErrNoObject ends it.
func (o *Objects) StatAll(ctx context.Context, ids []objects.ID, visit func(i int, kind objects.Kind, size int64, err error)) error {
	visited := 0
	for part := range slices.Chunk(ids, readWindow) {
		first := visited
		err := o.ask(ctx, requestFor("info", part...), func(p *catFile) error {
			for i, id := range part {
				kind, size, err := p.head(id)
				if errors.Is(err, errBroken) {
					return err
				}
				if first+i >= visited { // it may be asked for again, when a process died
					visited++
					visit(first+i, kind, size, err)
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Read returns kind and content of an object. ErrTooLarge says that it has more than limit bytes.
func (o *Objects) Read(ctx context.Context, id objects.ID, limit int64) (objects.Kind, []byte, error) {
	var kind objects.Kind
	var content []byte
	err := o.ask(ctx, requestFor("contents", id), func(p *catFile) error {
		var size int64
		var err error
		kind, size, err = p.head(id)
		if err != nil {
			return err
		}
		if size > limit {
			// Reading on would cost what the bound is to prevent; a new process costs a few milliseconds.
			return errors.Join(tooLarge(id, size, limit), errBroken)
		}
		content = make([]byte, size)
		return p.body(content)
	})
	return kind, content, err
}

// readWindow is how many objects are asked for at once: what is asked for again when a process died.
const readWindow = 1000

// answerPipe is how much git may answer ahead of its reader, in bytes: what Linux lets a pipe have without privileges
// (fs.pipe-max-size). With less, git and its reader wait for each other at every few objects.
const answerPipe = 1 << 20

// ReadAll reads objects, many in one request, and calls visit for each in the sequence of ids with its content or an error. The error is
// ErrNoObject for a missing object, and ErrTooLarge for one with more than limit bytes. Any other failure ends it.
func (o *Objects) ReadAll(ctx context.Context, ids []objects.ID, limit int64, visit func(i int, content []byte, err error)) error {
	for first := 0; first < len(ids); {
		w := o.window(ids[first:], limit)
		err := w.read(ctx, func(i int, content []byte, err error) { visit(first+i, content, err) })
		if first += w.visited; err != nil && !errors.Is(err, errForged) {
			return err
		}
	}
	return nil
}

// Copy writes the content of an object, of any size.
func (o *Objects) Copy(ctx context.Context, id objects.ID, w io.Writer) error {
	return o.ask(ctx, requestFor("contents", id), func(p *catFile) error {
		_, size, err := p.head(id)
		if err != nil {
			return err
		}
		if _, err := io.CopyN(w, p.out, size); err != nil {
			return errors.Join(fmt.Errorf("copy object %s: %w", id, objects.WrapFull(err)), errBroken)
		}
		return p.body(nil)
	})
}

// Close ends the process; a later call starts a new one.
func (o *Objects) Close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.end()
	return nil
}

func tooLarge(id objects.ID, size, limit int64) error {
	return fmt.Errorf("%w: %s has %d bytes, and the limit is %d", ErrTooLarge, id, size, limit)
}

// errBroken marks answers after which the process cannot be used any more.
var errBroken = errors.New("object reader out of step")

// ask sends one request and reads its answer. A process that died before it answered (a machine short of memory, say) is
// replaced once.
func (o *Objects) ask(ctx context.Context, request []byte, read func(*catFile) error) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	fresh := o.process == nil
	err := o.try(ctx, request, read)
	if errors.Is(err, errBroken) && !errors.Is(err, ErrTooLarge) && !fresh && ctx.Err() == nil && errors.Is(err, io.EOF) {
		err = o.try(ctx, request, read)
	}
	if ctx.Err() != nil {
		return fmt.Errorf("read object: %w", context.Cause(ctx))
	}
	return err
}

func (o *Objects) try(ctx context.Context, request []byte, read func(*catFile) error) error {
	if o.process == nil {
		if err := o.start(); err != nil {
			return err
		}
	}
	p := o.process
	// The process outlives this call, so a call that is given up must kill it to get free.
	release := context.AfterFunc(ctx, p.stop)
	defer release()
	err := p.ask(request, read)
	if errors.Is(err, errBroken) || ctx.Err() != nil {
		o.end()
		if why := p.errs.String(); why != "" && !errors.Is(err, ErrTooLarge) {
			err = fmt.Errorf("%w: %s: %w", ErrCorrupt, why, err)
		}
	}
	return err
}

// ask writes a request and reads its answer.
func (p *catFile) ask(request []byte, read func(*catFile) error) error {
	if _, err := p.in.Write(request); err != nil {
		return errors.Join(fmt.Errorf("ask for object: %w", err), io.EOF, errBroken)
	}
	return read(p)
}

// requestFor asks a command about objects. Git answers at the flush, so that it never waits for its reader while somebody
// waits to write to it.
func requestFor(command string, ids ...objects.ID) []byte {
	var request []byte
	for _, id := range ids {
		request = append(append(request, command...), ' ')
		request = append(hex.AppendEncode(request, id[:]), '\n')
	}
	return append(request, "flush\n"...)
}

func (o *Objects) start() error {
	// Not the caller's context: the process serves later callers too.
	ctx, stop := context.WithCancel(context.Background())
	cmd := o.runner.command(ctx, call{args: []string{"cat-file", "--batch-command", "--buffer"}})
	p := &catFile{cmd: cmd, errs: &tail{}, stop: stop}
	cmd.Stderr = p.errs
	in, err := cmd.StdinPipe()
	if err != nil {
		stop()
		return fmt.Errorf("start object reader: %w", err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		stop()
		return fmt.Errorf("start object reader: %w", err)
	}
	widen(out)
	if err := cmd.Start(); err != nil {
		stop()
		return fmt.Errorf("start object reader: %w", err)
	}
	p.in, p.out = in, bufio.NewReaderSize(out, 64<<10)
	o.process = p
	return nil
}

// widen gives a pipe room for answerPipe. Without, it is slower and right all the same.
func widen(pipe io.Reader) {
	file, ok := pipe.(*os.File)
	if !ok {
		return
	}
	raw, err := file.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) { _, _ = unix.FcntlInt(fd, unix.F_SETPIPE_SZ, answerPipe) })
}

// end kills the process and waits for it.
func (o *Objects) end() {
	if o.process == nil {
		return
	}
	o.process.stop()
	// It was killed: how it ended says nothing.
	_ = o.process.cmd.Wait()
	o.process = nil
}

// head reads "<id> <kind> <size>" or "<id> missing".
func (p *catFile) head(id objects.ID) (objects.Kind, int64, error) {
	line, err := p.out.ReadSlice('\n')
	if err != nil {
		return "", 0, errors.Join(fmt.Errorf("read object %s: %w", id, err), io.EOF, errBroken)
	}
	var want [2 * len(id)]byte
	hex.Encode(want[:], id[:])
	answer, mine := bytes.CutPrefix(bytes.TrimSuffix(line, []byte{'\n'}), want[:])
	if mine && string(answer) == " missing" {
		return "", 0, fmt.Errorf("%w: %s", ErrNoObject, id)
	}
	kind, length, whole := bytes.Cut(bytes.TrimPrefix(answer, []byte{' '}), []byte{' '})
	size, err := strconv.ParseInt(string(length), 10, 64)
	if !mine || !whole || err != nil {
		return "", 0, errors.Join(fmt.Errorf("read object %s: answer %q", id, line), errBroken)
	}
	return objects.Kind(kind), size, nil
}

// content reads one answer to the end, whatever it is.
func (p *catFile) content(id objects.ID, limit int64) ([]byte, error) {
	_, size, err := p.head(id)
	if err != nil {
		return nil, err
	}
	if size > limit {
		if _, err := io.CopyN(io.Discard, p.out, size); err != nil {
			return nil, errors.Join(fmt.Errorf("pass over object %s: %w", id, err), errBroken)
		}
		return nil, errors.Join(tooLarge(id, size, limit), p.body(nil))
	}
	content := p.take(int(size))
	return content, p.body(content)
}

// Small contents are cut from pieces of slab bytes, so that not each of them is an allocation.
const (
	slab        = 64 << 10
	smallObject = 8 << 10
)

// take gives room for a content.
func (p *catFile) take(size int) []byte {
	if size > smallObject {
		return make([]byte, size)
	}
	if size > len(p.room) {
		p.room = make([]byte, slab)
	}
	content := p.room[:size:size]
	p.room = p.room[size:]
	return content
}

// body reads what is left of an object's content and the newline after it.
func (p *catFile) body(content []byte) error {
	if _, err := io.ReadFull(p.out, content); err != nil {
		return errors.Join(fmt.Errorf("read object: %w", err), errBroken)
	}
	if c, err := p.out.ReadByte(); err != nil || c != '\n' {
		return errors.Join(errors.New("read object: no newline after it"), err, errBroken)
	}
	return nil
}
