// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Command probe is what `verify` runs in pods: one small question to the world around it for each command. It prints what it found, and
// fails if the answer is no.
package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"time"
)

// patience is for one connection or look-up.
const patience = 3 * time.Second

func main() {
	commands := map[string]func([]string) error{
		"serve": serve, "dial": dial, "refused": refused, "lookup": lookup, "fill": fill, "write": write, "read": read,
	}
	if len(os.Args) < 3 || commands[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: probe serve|dial|refused|lookup|fill|write|read ARGUMENTS…")
		os.Exit(2)
	}
	if err := commands[os.Args[1]](os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, "probe:", err)
		os.Exit(1)
	}
}

// serve answers HTTP on an address.
func serve(arguments []string) error {
	server := &http.Server{Addr: arguments[0], ReadHeaderTimeout: patience, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, "hello")
	})}
	return server.ListenAndServe()
}

// dial succeeds when every address accepts a connection.
func dial(arguments []string) error {
	for _, address := range arguments {
		connection, err := net.DialTimeout("tcp", address, patience)
		if err != nil {
			return err
		}
		fmt.Println("connected to", connection.RemoteAddr())
		if err := connection.Close(); err != nil {
			return err
		}
	}
	return nil
}

// refused succeeds when no address can be reached. An address udp/HOST:PORT is asked a DNS question.
func refused(arguments []string) error {
	for _, address := range arguments {
		var err error
		if server, ok := strings.CutPrefix(address, "udp/"); ok {
			err = ask(server, "kubernetes.default.svc.cluster.local.")
		} else {
			err = dial([]string{address})
		}
		if err == nil {
			return fmt.Errorf("%s was reached", address)
		}
		fmt.Println("not reached:", err)
	}
	return nil
}

func lookup(arguments []string) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	addresses, err := net.DefaultResolver.LookupHost(ctx, arguments[0])
	fmt.Println(addresses)
	return err
}

func ask(server, name string) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	resolver := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", server)
	}}
	_, err := resolver.LookupHost(ctx, name)
	return err
}

// fill writes a file until the file system is full. Anything else that ends it is an error.
func fill(arguments []string) error {
	file, err := os.Create(arguments[0])
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // the file system is full
	chunk := make([]byte, 1<<20)
	for written := 0; ; {
		n, err := file.Write(chunk)
		written += n
		if errors.Is(err, syscall.ENOSPC) {
			fmt.Println(written >> 20)
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func write(arguments []string) error {
	return os.WriteFile(arguments[0], []byte(strings.Join(arguments[1:], " ")), 0o644)
}

func read(arguments []string) error {
	content, err := os.ReadFile(arguments[0])
	fmt.Println(strings.TrimSpace(string(content)))
	return err
}
