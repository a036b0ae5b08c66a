// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/tidewaiter/tidewaiter/internal/app/watchdog/library"
	"github.com/tidewaiter/tidewaiter/internal/core/journal"
	"github.com/tidewaiter/tidewaiter/internal/core/knowledge"
	"github.com/tidewaiter/tidewaiter/internal/core/plain"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/secrets"
	"github.com/tidewaiter/tidewaiter/internal/core/supervise"
	"github.com/tidewaiter/tidewaiter/internal/pod/git"
	"github.com/tidewaiter/tidewaiter/internal/pod/objects"
)

// maxLeftShown bounds how many documents that are not delivered a report names, and maxLearned what it says of all documents, in bytes.
const maxLeftShown, maxLearned = 3, 512

// commitDocuments lets a commit with the documents of reviewers follow the reviewed work, or takes it back. It is the same commit each time for the same work and
// documents, so that an approval of it holds. No checkpoint of the agent has these documents. If the branch has an earlier such commit, the new one follows that too,
// so that the push is a fast-forward.
func (s *Service) commitDocuments(ctx context.Context, o protocol.Orders, e *supervise.Reviewed) error {
	j := s.Journal.State()
	made, changed := journal.KnowledgeCommitted{On: j.Promoted.Commit, Commit: j.Promoted.Commit, Tree: j.Promoted.Tree}, 0
	if k := o.Policy.Knowledge; k.Inject && k.Deliver == policy.KnowledgeCommit && len(j.Written) > 0 {
		tree, n, left, err := s.treeWith(ctx, j.Promoted.Tree, j.Written)
		if err != nil {
			return fmt.Errorf("put documents of reviewers into %s: %w", knowledge.Dir, err)
		}
		made.Tree, changed, e.Knowledge = tree.String(), n, learnedWords(n, left)
	}
	after, err := s.after(ctx, o, made)
	if err != nil {
		return fmt.Errorf("see whether branch %s has an earlier commit with documents of reviewers: %w", o.Delivery.Branch, err)
	}
	if made.After = after; changed > 0 || after != "" {
		if err := s.commitTree(ctx, o, &made, changed > 0); err != nil {
			return fmt.Errorf("commit documents of reviewers: %w", err)
		}
	}
	if after != "" {
		e.Knowledge += "; its last commit also follows " + after + ", which the branch had before"
	}
	if j.Head() != (journal.Promoted{Commit: made.Commit, Tree: made.Tree}) {
		s.Log.InfoContext(ctx, "Documents of reviewers", "commit", made.Commit, "on", made.On, "result", strings.TrimPrefix(e.Knowledge, "; "))
		if err := s.Journal.Note(journal.Record{KnowledgeCommitted: &made}); err != nil {
			return err
		}
		if err := s.Probe.After("knowledge journaled"); err != nil {
			return err
		}
	}
	e.Head, e.Tree = made.Commit, made.Tree
	return nil
}

// after is which earlier commit with documents of reviewers the next one has to follow, because the branch on the server has it: the push was taken, and
// the answer was lost. It is empty if there is none.
func (s *Service) after(ctx context.Context, o protocol.Orders, next journal.KnowledgeCommitted) (string, error) {
	j := s.Journal.State()
	if !o.Delivery.Push || !j.MayBeBehind(next) {
		return "", nil
	}
	remote, err := s.Access.Remote(o)
	if err != nil {
		return "", err
	}
	there, err := s.Repository.Branch(ctx, remote, o.Delivery.Branch)
	if err != nil || there.IsZero() {
		return "", err
	}
	return j.After(next, there.String()), nil
}

// Overtaken says whether the branch has an earlier commit with documents that the head does not follow, because the server has taken its push since the review. Another
// review makes a commit that follows it.
func (s *Service) Overtaken(ctx context.Context, o protocol.Orders) (bool, error) {
	j := s.Journal.State()
	now := journal.KnowledgeCommitted{On: j.Promoted.Commit, Tree: j.Head().Tree}
	if k := j.Knowledge; k != nil && k.On == now.On {
		now.After = k.After
	}
	after, err := s.after(ctx, o, now)
	return after != now.After && after != "", err
}

// commitTree makes the commit with the documents, or without any, and keeps it by a ref.
func (s *Service) commitTree(ctx context.Context, o protocol.Orders, made *journal.KnowledgeCommitted, documents bool) error {
	if err := s.Guard(); err != nil {
		return err
	}
	repo := s.Repository
	on, err := objects.ParseID(made.On)
	if err != nil {
		return err
	}
	tree, err := objects.ParseID(made.Tree)
	if err != nil {
		return err
	}
	subject, parents := "Write down what reviewers have learned", []objects.ID{on}
	if !documents {
		subject = "Deliver no documents of reviewers"
	}
	if made.After != "" {
		after, err := objects.ParseID(made.After)
		if err != nil {
			return err
		}
		parents = append(parents, after)
	}
	work, err := repo.ReadCommit(ctx, on)
	if err != nil {
		return err
	}
	by := objects.Person{Name: protocol.Author, Email: protocol.AuthorEmail, When: work.Committer.When}
	id, err := repo.WriteCommit(objects.Commit{Tree: tree, Parents: parents, Author: by, Committer: by,
		Message: fmt.Sprintf("%s\n\nTidewaiter-Feature: %s/%s\n", subject, o.Feature.Namespace, o.Feature.Name)})
	if err != nil {
		return err
	}
	made.Commit = id.String()
	now, err := repo.Ref(ctx, protocol.RefKnowledge)
	if err != nil || now == id {
		return err
	}
	moves, err := s.replaced(ctx, now)
	if err != nil {
		return err
	}
	if err := repo.UpdateRefs(ctx, append(moves, git.RefUpdate{Name: protocol.RefKnowledge, Old: now, New: id})); err != nil {
		return err
	}
	return s.Probe.After("knowledge committed")
}

// replaced keeps an earlier commit with documents by a ref of its own: the journal speaks of it, so that the record of the Feature is whole only with it. A commit
// that a crash left before the journal had it can be gone.
func (s *Service) replaced(ctx context.Context, earlier objects.ID) ([]git.RefUpdate, error) {
	if earlier.IsZero() {
		return nil, nil
	}
	repo := s.Repository
	if _, _, err := repo.Objects().Stat(ctx, earlier); errors.Is(err, git.ErrNoObject) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	ref := protocol.RefReplaced + "/" + earlier.String()
	kept, err := repo.Ref(ctx, ref)
	return []git.RefUpdate{{Name: ref, Old: kept, New: earlier}}, err
}

// treeWith is a tree with the documents that reviewers have written and an index of all documents. It says how many documents differ from the ones in
// the tree, and which are left out.
func (s *Service) treeWith(ctx context.Context, tree string, written map[string]string) (with objects.ID, changed int, left []knowledge.Answer, err error) {
	root, err := objects.ParseID(tree)
	if err != nil {
		return root, 0, nil, err
	}
	before, err := s.Repository.Tree(ctx, root)
	if err != nil {
		return root, 0, nil, err
	}
	at, err := library.Read(ctx, s.Repository, tree)
	if err != nil {
		return root, 0, nil, err
	}
	documents, left, err := s.placeable(ctx, before, written)
	if err != nil {
		return root, 0, nil, err
	}
	store := s.Repository.Store()
	var edits []objects.Edit
	put := func(file, text string) error {
		id, err := store.Write(objects.KindBlob, []byte(text))
		if e := before.Lookup(file); err == nil && (e == nil || e.ID != id) {
			edits = append(edits, objects.Edit{Path: file, Entry: &objects.Entry{Mode: objects.ModeFile, ID: id, Size: int64(len(text))}})
		}
		return err
	}
	for _, d := range documents {
		if err := put(d.Path, written[d.Path]); err != nil {
			return root, 0, nil, err
		}
	}
	if changed = len(edits); changed == 0 {
		return root, 0, left, nil
	}
	why, err := s.indexTaken(ctx, before)
	if err != nil {
		return root, 0, nil, err
	}
	if why != "" {
		left = slices.Insert(left, 0, knowledge.Answer{Path: knowledge.IndexPath, Reason: knowledge.Malformed, Why: why}) // a user can do something about it
	} else if err := put(knowledge.IndexPath, knowledge.Index(knowledge.Store{Base: at.Documents, Written: documents}.Documents())); err != nil {
		return root, 0, nil, err
	}
	after, err := before.Apply(edits, func(_ objects.ID, content []byte) error {
		_, err := store.Write(objects.KindTree, content)
		return err
	})
	if err != nil {
		return root, 0, nil, err
	}
	return after.ID, changed, left, nil
}

// placeable are the written documents that can stand in a tree: they keep to the format of this version, have no secrets, and nothing but documents that reviewers
// know stands in their way.
func (s *Service) placeable(ctx context.Context, tree *objects.Tree, written map[string]string) (documents []knowledge.Document, left []knowledge.Answer, err error) {
	scanner := secrets.New()
	for _, file := range slices.Sorted(maps.Keys(written)) {
		why, err := s.taken(ctx, tree, file)
		if err != nil {
			return nil, nil, err
		}
		text := []byte(written[file])
		d, unfit := knowledge.Parse(file, text)
		if unfit != nil {
			why = unfit.Error()
		}
		if why == "" {
			found, _, err := scanner.Find(ctx, secrets.Budget, file, nil, text)
			if err != nil {
				return nil, nil, err
			}
			if len(found) > 0 {
				why = fmt.Sprintf("line %d looks like a secret (%s)", found[0].Line, found[0].Rule)
			}
		}
		if why != "" {
			left = append(left, knowledge.Answer{Path: file, Reason: knowledge.Malformed, Why: why})
			continue
		}
		documents = append(documents, d)
	}
	return documents, left, nil
}

// taken says why no document of reviewers can stand at a path of a tree; empty if one can. Reviewers know the file of the base. An agent changes it while its
// policy gives no knowledge, or only audits, and its work counts for more.
func (s *Service) taken(ctx context.Context, tree *objects.Tree, file string) (why string, err error) {
	if why = occupied(tree, file); why != "" {
		return why, nil
	}
	base, err := objects.ParseID(s.Journal.State().Base.Tree)
	if err != nil {
		return "", err
	}
	was, _, err := s.Repository.Entry(ctx, base, file)
	var now objects.ID
	if e := tree.Lookup(file); e != nil {
		now = e.ID
	}
	if err == nil && now != was.ID {
		why = "the work adds, changes or deletes that file"
	}
	return why, err
}

// indexTaken says why no index of Tidewaiter can stand in a tree; empty if one can.
func (s *Service) indexTaken(ctx context.Context, tree *objects.Tree) (why string, err error) {
	const theirs = "it has lines that Tidewaiter does not write; delete the file to get an index of all documents"
	if why = occupied(tree, knowledge.IndexPath); why != "" {
		return why, nil
	}
	e := tree.Lookup(knowledge.IndexPath)
	if e == nil {
		return "", nil
	}
	all := s.Repository.Objects()
	if _, size, err := all.Stat(ctx, e.ID); err != nil || size > knowledge.MaxIndex {
		return theirs, err
	}
	_, text, err := all.Read(ctx, e.ID, knowledge.MaxIndex)
	if err != nil || knowledge.IsIndex(string(text)) {
		return "", err
	}
	return theirs, nil
}

// occupied says why no document can stand at a path of a tree; empty if one can.
func occupied(tree *objects.Tree, file string) string {
	for at := path.Dir(file); at != "."; at = path.Dir(at) {
		if e := tree.Lookup(at); e != nil && e.Mode != objects.ModeTree {
			return at + " is not a directory"
		}
	}
	if e := tree.Lookup(file); e != nil && e.Mode != objects.ModeFile && e.Mode != objects.ModeExecutable {
		return "it is not a regular file in the repository"
	}
	return ""
}

// learnedWords say in a final report which documents the delivery has, and why others are left out.
func learnedWords(changed int, left []knowledge.Answer) string {
	var b strings.Builder
	switch changed {
	case 0:
	case 1:
		fmt.Fprintf(&b, "; its last commit has a document of reviewers in %s", knowledge.Dir)
	default:
		fmt.Fprintf(&b, "; its last commit has %d documents of reviewers in %s", changed, knowledge.Dir)
	}
	for i, a := range left {
		if i == maxLeftShown {
			fmt.Fprintf(&b, "; and %d more are left out", len(left)-i)
			break
		}
		fmt.Fprintf(&b, "; %s is left out: %s", plain.Line(a.Path, knowledge.MaxPath), a.Why)
	}
	return plain.CutBytes(b.String(), maxLearned)
}
