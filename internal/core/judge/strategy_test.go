// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/policy"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
)

func TestStrategy(t *testing.T) {
	auto := policy.Effective{Execution: policy.Execution{Strategy: policy.StrategyAuto}}
	ruled := auto
	ruled.Paths.Rules = []policy.PathRule{{Paths: []string{"db/**/*.sql"}, Access: policy.ReadOnly}, {Paths: []string{"api/**", "web/shared/**"}, Access: policy.ReadOnly}}
	direct, shadow := ruled, ruled
	direct.Execution.Strategy, shadow.Execution.Strategy = policy.StrategyDirect, policy.StrategyShadow
	web := protocol.Plan{Allowed: []string{"web/form/**"}, Files: &protocol.FilePlan{Modify: []string{"web/form/a.html"}}}
	for name, test := range map[string]struct {
		plan      protocol.Plan
		contracts []string
		policy    policy.Effective
		want      string
		reason    string
	}{
		"Direct is what it is":              {protocol.Plan{}, []string{"openapi"}, direct, policy.StrategyDirect, ""},
		"Shadow is what it is":              {web, nil, shadow, policy.StrategyShadow, ""},
		"a contract":                        {web, []string{"openapi"}, auto, policy.StrategyShadow, `the contract "openapi"`},
		"neither contracts nor rules":       {protocol.Plan{}, nil, auto, policy.StrategyDirect, "names no contracts"},
		"no bounds, and rules":              {protocol.Plan{}, nil, ruled, policy.StrategyShadow, `bounds no paths, so that it may change "db/**/*.sql"`},
		"an area that a rule is about":      {protocol.Plan{Allowed: []string{"web/**"}}, nil, ruled, policy.StrategyShadow, `may change "web/**"`},
		"a planned file that a rule is for": {protocol.Plan{Allowed: []string{"web/**"}, Files: &protocol.FilePlan{Create: []string{"web/shared/b.ts"}}}, nil, ruled, policy.StrategyShadow, `are about "web/shared/**"`},
		"an area in other letters":          {protocol.Plan{Allowed: []string{"WEB/Shared"}}, nil, ruled, policy.StrategyShadow, `are about "web/shared/**"`},
		"planned files apart from all":      {web, nil, ruled, policy.StrategyDirect, "names no contracts"},
	} {
		t.Run(name, func(t *testing.T) {
			got, reason := Strategy(test.plan, test.contracts, test.policy)
			if got != test.want || !strings.Contains(reason, test.reason) || test.reason == "" && reason != "" {
				t.Errorf("%s: %s", got, reason)
			}
		})
	}
	if _, reason := Strategy(protocol.Plan{}, []string{strings.Repeat("é", 1000)}, auto); len(reason) > 256 {
		t.Errorf("a reason of %d bytes", len(reason))
	}
}

// TestAutoComparesInBoundedTime: whoever writes plans and policies of a project does not keep the manager busy with them.
func TestAutoComparesInBoundedTime(t *testing.T) {
	auto := policy.Effective{Execution: policy.Execution{Strategy: policy.StrategyAuto}}
	plan := protocol.Plan{Files: &protocol.FilePlan{}}
	deep := strings.Repeat("?/", 240)
	for i := range 3000 {
		plan.Files.Modify = append(plan.Files.Modify, fmt.Sprintf("%sa%d", deep, i))
	}
	for i := range 64 {
		r := policy.PathRule{Access: policy.ReadOnly}
		for j := range 64 {
			r.Paths = append(r.Paths, fmt.Sprintf("%sb%d-%d", deep, i, j))
		}
		auto.Paths.Rules = append(auto.Paths.Rules, r)
	}
	if got, reason := Strategy(plan, nil, auto); got != policy.StrategyShadow || !strings.Contains(reason, "too many") {
		t.Errorf("%s: %s", got, reason)
	}
}

// TestAutoComparesWildcardsInBoundedTime: a name is compared with a pattern of many wildcards in a time that is about the product of their lengths.
func TestAutoComparesWildcardsInBoundedTime(t *testing.T) {
	auto := policy.Effective{Execution: policy.Execution{Strategy: policy.StrategyAuto}}
	plan := protocol.Plan{Files: &protocol.FilePlan{Modify: alike(500, 240)}}
	for i := range 100 {
		auto.Paths.Rules = append(auto.Paths.Rules, policy.PathRule{Access: policy.ReadOnly, Paths: []string{slow(i)}})
	}
	began := time.Now()
	if got, reason := Strategy(plan, nil, auto); got != policy.StrategyShadow || !strings.Contains(reason, "too many") {
		t.Errorf("%s: %s", got, reason)
	}
	if took := time.Since(began); took > time.Minute {
		t.Errorf("it took %s", took)
	}
}

// alike are long names of files with little that is different.
func alike(many, long int) (list []string) {
	for i := range many {
		list = append(list, fmt.Sprintf("/%s%dc", strings.Repeat("a", long), i))
	}
	return list
}

// slow is a pattern that takes long to be compared with such a name.
func slow(i int) string { return fmt.Sprintf("/*%sb%d*c", strings.Repeat("[a]", 120), i) }

// TestAutoComparesLargePlans: files and rules as large as projects have them are compared to the end.
func TestAutoComparesLargePlans(t *testing.T) {
	auto := policy.Effective{Execution: policy.Execution{Strategy: policy.StrategyAuto}}
	plan := protocol.Plan{Files: &protocol.FilePlan{}}
	for i := range 400 {
		plan.Files.Modify = append(plan.Files.Modify, fmt.Sprintf("web/components/form/field%d.ts", i))
		auto.Paths.Rules = append(auto.Paths.Rules, policy.PathRule{Access: policy.ReadOnly, Paths: []string{fmt.Sprintf("db/migrations/%d/**", i)}})
	}
	if got, reason := Strategy(plan, nil, auto); got != policy.StrategyDirect {
		t.Errorf("%s: %s", got, reason)
	}
}
