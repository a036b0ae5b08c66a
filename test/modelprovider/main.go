// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Command modelprovider is the model provider of the demo and the end-to-end tests: it plays the scripts that prompts
// bring.
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

	"github.com/tidewaiter/tidewaiter/internal/testkit/provider"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "modelprovider:", err)
		os.Exit(1)
	}
}

func run() error {
	cert := flag.String("cert", "", "file with the server's certificate chain, PEM; empty: plain HTTP")
	key := flag.String("key", "", "file with the certificate's key, PEM")
	apiKey := flag.String("api-key", "", "key that clients must give; empty: any")
	listen := flag.String("listen", ":8443", "address to listen on")
	recorded := flag.String("recorded", "", "address that gives the requests that came, as JSON; empty: none")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	player := provider.New(*apiKey)
	if *recorded != "" {
		go func() {
			server := &http.Server{Addr: *recorded, Handler: http.HandlerFunc(player.ServeRecorded), ReadHeaderTimeout: 10 * time.Second}
			slog.Error("Cannot tell what came", "error", server.ListenAndServe())
		}()
	}
	server := &http.Server{Addr: *listen, Handler: player, ReadHeaderTimeout: 10 * time.Second}
	done := make(chan error, 1)
	go func() {
		<-ctx.Done()
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		done <- server.Shutdown(grace)
	}()
	slog.Info("Playing scripts", "address", *listen)
	serve := server.ListenAndServe
	if *cert != "" {
		serve = func() error { return server.ListenAndServeTLS(*cert, *key) }
	}
	if err := serve(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-done
}
