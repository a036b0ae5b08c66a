// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package proc

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"

	"golang.org/x/sys/unix"
)

// status is what matters of a status file.
type status struct {
	task
	parent, threads int
}

var errNoState = errors.New("status without a state")

// parseStatus reads proc_pid_status(5). Fields that a kernel does not have stay zero, but for the state.
func parseStatus(text []byte) (status, error) {
	var st status
	for line := range bytes.Lines(text) {
		key, value, ok := bytes.Cut(line, []byte(":"))
		if !ok {
			continue
		}
		value = bytes.TrimSpace(value)
		var err error
		switch string(key) {
		case "State":
			if len(value) > 0 {
				st.state = value[0]
			}
		case "Pid":
			st.id, err = strconv.Atoi(string(value))
		case "PPid":
			st.parent, err = strconv.Atoi(string(value))
		case "Threads":
			st.threads, err = strconv.Atoi(string(value))
		case "SigPnd", "ShdPnd":
			var set uint64
			set, err = strconv.ParseUint(string(value), 16, 64)
			st.stopPending = st.stopPending || set&(1<<(unix.SIGSTOP-1)) != 0
		case "voluntary_ctxt_switches", "nonvoluntary_ctxt_switches":
			var n uint64
			n, err = strconv.ParseUint(string(value), 10, 64)
			st.switches += n
		}
		if err != nil {
			return status{}, fmt.Errorf("status field %s: %w", key, err)
		}
	}
	if st.state == 0 {
		return status{}, errNoState
	}
	return st, nil
}
