// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package redacted

import (
	"encoding/json"
	"fmt"
	"log/slog"
)

// Logs are the options of a handler whose lines have no secrets. It searches each message and each value on its own, so that no two of them
// hide what stands between them.
func Logs(level slog.Leveler) *slog.HandlerOptions {
	return &slog.HandlerOptions{Level: level, ReplaceAttr: attribute}
}

// attribute of a line without secrets. Keys are ours.
func attribute(_ []string, a slog.Attr) slog.Attr {
	switch a.Value.Kind() {
	case slog.KindString:
		text := a.Value.String()
		if without := line(text); without != text {
			a.Value = slog.StringValue(without)
		}
	case slog.KindAny:
		for _, text := range written(a.Value.Any()) {
			if without := line(text); without != text {
				a.Value = slog.StringValue(without)
				break
			}
		}
	case slog.KindBool, slog.KindDuration, slog.KindFloat64, slog.KindInt64, slog.KindTime, slog.KindUint64, slog.KindGroup, slog.KindLogValuer:
	}
	return a
}

// written is what handlers write of a value: one for JSON, the other for text.
func written(v any) []string {
	switch v := v.(type) {
	case slog.Level:
		return nil
	case error:
		return []string{v.Error()}
	case []byte:
		return []string{string(v)}
	}
	text, err := json.Marshal(v)
	if err != nil {
		text = nil // the handler says so
	}
	return []string{string(text), fmt.Sprintf("%+v", v)}
}
