// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/tidewaiter/tidewaiter/api/v1alpha1"
	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/runtimes"
	"github.com/tidewaiter/tidewaiter/internal/kube/features"
	"github.com/tidewaiter/tidewaiter/internal/kube/identity"
)

// paramTask is a task of the Feature, by its name.
const paramTask = "task"

// featurePrompt shows what a task of a Feature would be told if it began now: templates, then the prompt and the
// instructions. No model is asked.
func (s *Server) featurePrompt(w http.ResponseWriter, r *http.Request) {
	query, err := parameters(r, paramTask)
	if err != nil {
		fail(w, apierrors.NewBadRequest(err.Error()))
		return
	}
	release, refused := s.streams.take(whoAsks(r).GetName())
	if refused != "" {
		fail(w, apierrors.NewTooManyRequests(refused, 1))
		return
	}
	defer release()
	key := feature(r)
	var f v1alpha1.Feature
	if err := s.options.Live.Get(r.Context(), key, &f); err != nil {
		s.refuse(w, r, key, err)
		return
	}
	prefix, note, effective, err := s.prefix(r, &f)
	if err != nil {
		s.refuse(w, r, key, err)
		return
	}
	tasks := features.Added(&f, features.Planned(&f, features.Orders(&f, effective, "", nil))).Tasks
	at := 0
	if name := query.Get(paramTask); name != "" {
		at = slices.IndexFunc(tasks, func(t protocol.Task) bool { return t.Name == name })
	}
	if at < 0 {
		fail(w, failure(http.StatusNotFound, fmt.Sprintf("the Feature %s has no task %q: it has %s", key.Name, query.Get(paramTask), taskNames(tasks))))
		return
	}
	if protocol.Added(tasks[at].Name) {
		if tasks[at].Instructions, err = s.added(r.Context(), &f, tasks[at].Name); err != nil {
			s.options.Logger.Error(err, "Cannot read the ledger", "feature", key)
			fail(w, failure(http.StatusServiceUnavailable, "the manager cannot read the instructions of this task from the gateway's ledger at the moment; features/log of this Feature has them too"))
			return
		}
	}
	prompt := f.Spec.Prompt
	if name, entry, from := features.PromptKey(&f); from {
		prompt = fmt.Sprintf("(the text of key %q of ConfigMap %s)", entry, name)
	}
	text := runtimes.Task{Prompt: prompt, Instructions: tasks[at].Instructions, Facts: features.Facts(&f, effective, tasks[at].Name)}
	if features.Mode(&f, effective).Mode == policy.ModeDeterministic {
		text.Tools, text.ReadOnly, text.NoQuestions = "http://127.0.0.1"+protocol.MCPPath, true, effective.Questions.Asking == policy.AskOff
	}
	told := text.Apart()
	if runtime, _ := runtimes.Find(f.Spec.Agent.Runtime); runtime.Adapter != nil {
		if how := runtime.Adapter.Launch(text); how.Input != nil {
			told = *how.Input
		}
	}
	p := toPeople(w) // who writes prompts and templates of a project is not always who reads them
	_, _ = fmt.Fprintf(p, "%s%s%s\n", note, prefix, told)
	_ = p.Flush() // fails where the client has closed the connection
}

// added gives the instructions of a task that gates before the delivery have added, as the ledger has them.
func (s *Server) added(ctx context.Context, f *v1alpha1.Feature, task string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, ledgerTime)
	defer cancel()
	list, err := s.options.Ledger.History(ctx, url.Values{"feature": {string(f.UID)}, "task": {task}})
	if err != nil {
		return "", err
	}
	at := slices.IndexFunc(list, func(e protocol.HistoryEntry) bool { return e.Event == protocol.HistoryAdded })
	if at < 0 {
		return "", ErrNotRecorded
	}
	whole, err := s.options.Ledger.History(ctx, url.Values{"feature": {string(f.UID)}, "entry": {strconv.FormatInt(list[at].Sequence, 10)}})
	if err != nil || len(whole) != 1 {
		return "", errors.Join(ErrNotRecorded, err)
	}
	if whole[0].Missing != "" {
		return "", fmt.Errorf("%w: %s", ErrNotRecorded, whole[0].Missing)
	}
	return whole[0].Text, nil
}

// prefix of what a Feature's agent sends under the policy in effect, and a note where there is none.
func (s *Server) prefix(r *http.Request, f *v1alpha1.Feature) (prefix, note string, effective policy.Effective, err error) {
	effective, err = identity.Effective(r.Context(), s.options.Live, f, s.options.SystemNamespace)
	if err != nil {
		return "", "", effective, err
	}
	if !effective.Supervision.Enabled {
		return "", "(supervision.enabled is false: the gateway puts no template before this)\n", effective, nil
	}
	layers, _, err := identity.Templates(r.Context(), s.options.Live, f.Namespace, s.options.SystemNamespace)
	if err != nil {
		return "", "", effective, err
	}
	tooLarge := layers.Validate()
	switch {
	case tooLarge != nil:
		note = fmt.Sprintf("(the gateway asks no models: %v)\n", tooLarge)
	case layers.Empty():
		note = "(no Input template applies)\n"
	default:
		prefix = layers.Prefix()
	}
	return prefix, note, effective, nil
}

func taskNames(tasks []protocol.Task) string {
	names := make([]string, len(tasks))
	for i, t := range tasks {
		names[i] = t.Name
	}
	return strings.Join(names, ", ")
}
