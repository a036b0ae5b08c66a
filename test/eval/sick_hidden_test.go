// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package eval

import (
	"fmt"
	"strings"
	"time"
)

// sickHidden are runs that repeat themselves behind something that changes.
func sickHidden() []scenario {
	const undefined = "main.go:3:8: package shop/internal/gone is not in std\nmake: *** [Makefile:4: build] Error 1"
	return []scenario{
		{name: "a failure that is slept upon", kinds: loops, play: func(a *agent) {
			a.some("Make the build pass.")
			a.again(22, 5, func(int) { a.do(run("sleep 60 && make build").fails(2, undefined).takes(61 * time.Second)) })
		}},
		{name: "a failure, and a sleep in a turn of its own", kinds: loops, play: func(a *agent) {
			a.some("Make the build pass.")
			a.again(14, 4, func(int) {
				a.do(run("make build").fails(2, undefined))
				a.do(run("sleep 60").quiet().takes(time.Minute))
			})
		}},
		{name: "a success of 90 seconds that is had again and again", kinds: loops, play: func(a *agent) {
			a.some("Add a flag, and be sure that all passes.")
			a.again(24, 6, func(int) {
				a.do(run("make e2e").gives("40 of 40 scenarios passed in %ds", a.n(80, 99)).takes(90 * time.Second).uses(1))
			})
		}},
		{name: "a run that has ended and is asked for again and again", kinds: loops, play: func(a *agent) {
			a.some("How did run 4711 end?")
			a.again(24, 6, func(int) {
				a.do(run("sleep 30; hack/pipeline.sh 4711").gives(`{"id":4711,"status":"completed","conclusion":"failure"}`).takes(31 * time.Second))
			})
		}},
		{name: "the same failure in logs of 60 KB", window: 1_000_000, kinds: loops, play: func(a *agent) {
			a.some("Make the tests pass.")
			a.again(18, 5, func(int) { a.do(run("make test").fails(2, "%s", tested(a, 60<<10, "Order")).takes(20 * time.Second)) })
		}},
		{name: "the same success in logs of 200 KB", window: 2_000_000, kinds: loops, play: func(a *agent) {
			a.some("Add a flag, and be sure that all passes.")
			a.again(18, 6, func(int) { a.do(run("make test").gives("%s", tested(a, 200<<10)).takes(20 * time.Second)) })
		}},
		{name: "edit and test with logs of 60 KB, and the same test fails each time", window: 1_000_000, kinds: paces, play: func(a *agent) {
			a.some("Make TestOrder pass.")
			a.again(16, 7, func(i int) {
				a.do(edit("internal/order/order.go", fmt.Sprint("try", i), fmt.Sprint("try", i+1)))
				a.do(run("make test").fails(2, "%s", tested(a, 60<<10, "Order")).takes(20 * time.Second))
			})
		}},
		{name: "a failure of which more and less is shown", kinds: loops, play: func(a *agent) {
			a.some("Make the build pass.")
			lines := strings.Split(failures(a, "Order", "Invoice", "Basket", "Price"), "\n")
			a.again(20, 5, func(i int) {
				n := 3 + i%7
				a.do(run(fmt.Sprintf("make test 2>&1 | tail -n %d", n)).fails(2, "%s", strings.Join(lines[len(lines)-n:], "\n")))
			})
		}},
		{name: "a failure with another flag each time", kinds: loops, play: func(a *agent) {
			a.some("Make the build pass.")
			flags := strings.Fields("-v -x -a -n -race -work -trimpath -cover -msan -asan -json -i")
			a.again(20, 5, func(i int) {
				a.do(run(fmt.Sprintf("go build %s ./cmd/shop", strings.Join(flags[:1+i%len(flags)], " "))).fails(1, "cmd/shop/main.go:9:2: undefined: gone"))
				a.do(run("ls cmd/shop").gives("main.go"))
			})
		}},
		{name: "a failure with a random number before it", kinds: loops, play: func(a *agent) {
			a.some("Make the build pass.")
			a.again(20, 5, func(int) {
				n := a.n(1000, 32767)
				a.do(run(fmt.Sprintf("echo %d; make build", n)).fails(2, "%d\n%s", n, undefined))
			})
		}},
		{name: "a scratch file each turn that fails in the same way", kinds: paces, play: func(a *agent) {
			a.some("Read the sheet.")
			a.again(20, 6, func(i int) {
				path := fmt.Sprintf("scratch_%d.py", i)
				a.do(write(path, fmt.Sprintf("import openpyxl # try %d", i)))
				a.do(run("python "+path).fails(1, "Traceback (most recent call last):\n  File \"/workspace/%s\", line 1, in <module>\nModuleNotFoundError: No module named 'openpyxl'", path))
			})
		}},
		{name: "seven commands in turns with the same failure", kinds: loops, play: func(a *agent) {
			a.some("Look at the database.")
			all := []string{"psql -l", "psql -c 'select 1'", "pg_dump shop", "createdb shop", "pg_isready -h db", "psql -h db", "dropdb old"}
			a.again(24, 7, func(i int) {
				a.do(run(all[i%7]).fails(2, "could not connect to server: Connection refused\n\tIs the server running on host \"db\" and accepting TCP/IP connections on port 5432?"))
			})
		}},
		{name: "a loop beside an agent that changes files", kinds: loops, play: func(a *agent) {
			a.some("Let one agent port the package order and another one fix the build.")
			var ports, fixes []func(*agent)
			for i := range 20 {
				ports = append(ports, func(s *agent) { s.do(edit(file(300+i), fmt.Sprint("old", i), fmt.Sprint("new", i))) })
				fixes = append(fixes, func(s *agent) {
					if i == 0 {
						s.sick()
					}
					if s.do(run("make build").fails(2, undefined)); i == 4 {
						s.person()
					}
					s.do(read("go.mod"))
				})
			}
			a.do(delegate("Port the package order.", ports...), delegate("Fix the build.", fixes...))
		}},
		{name: "an edit that does not apply, and notes of it", kinds: loops, play: func(a *agent) {
			a.some("Raise the limit, and keep notes.")
			a.again(12, 4, func(i int) {
				a.do(edit("internal/limit/limit.go", "const limit = 10", "const limit = 20").ends(unmatched))
				a.do(edit("NOTES.md", fmt.Sprint("try ", i), fmt.Sprint("try ", i+1)))
			})
		}},
		{name: "three states of a line in turns", kinds: loops, play: func(a *agent) {
			a.some("Round the price as the tests want it.")
			states := []string{"floor(x)", "ceil(x)", "round(x)"}
			a.again(16, 6, func(i int) {
				a.do(edit("internal/price/price.go", states[i%3], states[(i+1)%3]))
				a.do(run("go test ./internal/price").fails(1, "%s", failures(a, []string{"Up", "Down", "Half"}[i%3])))
			})
		}},
		{name: "a linter that takes each edit back", kinds: loops, play: func(a *agent) {
			a.some("Use tabs in the table.")
			a.again(14, 4, func(i int) {
				a.do(edit("docs/table.md", "a  b", "a\tb"))
				a.do(run(fmt.Sprintf("make lint PART=%d", i)).gives("1 file reformatted"))
				a.touches("docs/table.md", "formatted")
			})
		}},
		{name: "an edit that is discarded and made again", kinds: loops, play: func(a *agent) {
			a.some("Make TestPrice pass.")
			a.again(12, 4, func(int) {
				a.do(edit("internal/price/price.go", "round(x)", "floor(x)"))
				a.do(run("go test ./internal/price").fails(1, "%s", failures(a, "PriceDown")))
				a.do(run("git checkout internal/price/price.go").gives("Updated 1 path from the index"))
				a.touches("internal/price/price.go", "checked out")
			})
		}},
		{name: "a whole file written in two versions in turns", kinds: loops, play: func(a *agent) {
			a.some("Write the configuration.")
			a.again(16, 5, func(i int) {
				a.do(write("deploy/shop.yaml", []string{"replicas: 1\nimage: shop:1\n", "replicas: 2\nimage: shop:1\n"}[i%2]))
				a.do(run("make check").fails(2, "check: %s", []string{"error: one replica is too few", "error: two replicas are too many"}[i%2]))
			})
		}},
		{name: "two tests of which one or the other fails after each edit", kinds: append([]kind{escalated}, loops...), play: func(a *agent) {
			a.some("Make the tests of price pass.")
			a.again(18, 8, func(i int) {
				a.do(edit("internal/price/price.go", fmt.Sprint("try", i), fmt.Sprint("try", i+1)))
				a.do(run("go test ./internal/price").fails(1, "%s", failures(a, []string{"Up", "Down"}[i%2])))
			})
		}},
	}
}
