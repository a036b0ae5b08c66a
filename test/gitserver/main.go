// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Command gitserver is the Git server of the demo and the end-to-end tests: it serves a directory of bare repositories
// over HTTPS.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/testkit/gitserver"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "gitserver:", err)
		os.Exit(1)
	}
}

func run() error {
	dir := flag.String("dir", "", "directory with the bare repositories (NAME.git)")
	cert := flag.String("cert", "", "file with the server's certificate chain, PEM")
	key := flag.String("key", "", "file with the certificate's key, PEM")
	user := flag.String("user", "", "user name that clients must give; empty: none")
	password := flag.String("password", "", "password that clients must give")
	listen := flag.String("listen", ":8443", "address to listen on")
	flag.Parse()
	if *dir == "" || *cert == "" || *key == "" {
		return errors.New("give --dir, --cert and --key")
	}
	handler, err := gitserver.New(*dir, *user, *password)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	server := &http.Server{Addr: *listen, Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	done := make(chan error, 1)
	go func() {
		<-ctx.Done()
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		done <- server.Shutdown(grace)
	}()
	slog.Info("Serving repositories", "dir", *dir, "address", *listen)
	if err := server.ListenAndServeTLS(*cert, *key); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-done
}
