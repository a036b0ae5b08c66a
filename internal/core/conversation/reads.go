// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package conversation

import (
	"strings"

	json "github.com/go-json-experiment/json/v1"
)

// Reads returns the path of the file that a call looks at; empty for any other call, going by its name only.
func (c Call) Reads() string {
	if name := strings.ToLower(c.Name); name != "read" && name != "read_file" && !strings.HasSuffix(name, "repo_read_file") {
		return ""
	}
	var a struct {
		FilePath  string `json:"file_path"`
		FilePath2 string `json:"filePath"`
		Path      string `json:"path"`
	}
	if json.Unmarshal([]byte(c.Arguments.Text), &a) != nil {
		return ""
	}
	return first(a.FilePath, a.FilePath2, a.Path)
}
