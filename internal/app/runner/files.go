// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
)

// lay writes files below a folder, each of which replaces what an earlier start has left there. The folder is the agent's: if the agent has
// put a link to somewhere else on the way, lay writes nothing, and no pipe of the agent is opened.
func lay(home string, files map[string]string) error {
	if len(files) == 0 {
		return nil
	}
	folder, err := os.OpenRoot(home)
	if err != nil {
		return fmt.Errorf("open the folder for the agent's files: %w", err)
	}
	defer folder.Close()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := layFile(folder, name, files[name]); err != nil {
			return fmt.Errorf("write the agent's file %s in %s: %w: remove what has its name", name, home, err)
		}
	}
	return nil
}

func layFile(folder *os.Root, name, text string) error {
	if err := folder.MkdirAll(path.Dir(name), 0o700); err != nil {
		return err
	}
	if err := folder.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	file, err := folder.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = file.WriteString(text)
	return errors.Join(err, file.Close())
}
