// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

// Package intakeclient talks to intake: reports go up, orders come down, over TLS and with the pod's own token. Nothing here gives up: an
// unreachable intake delays reports, and stops nobody.
package intakeclient

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	neturl "net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/plain"
	"github.com/tidewaiter/tidewaiter/internal/core/protocol"
	"github.com/tidewaiter/tidewaiter/internal/core/revision"
)

// requestTimeout bounds a request that does not wait for anything; a long poll may take this much longer than it waits.
const requestTimeout = 20 * time.Second

// Options of a Client.
type Options struct {
	// URL of intake, such as https://10.0.0.1:8443.
	URL string
	// ServerName that intake's certificate must have.
	ServerName string
	// CAPath is the bundle that vouches for it. It is read again when it has changed.
	CAPath string
	// TokenPath is the pod's projected token. It is read for every request, because the kubelet renews it.
	TokenPath string
	// Inquire is called once with each inquiry that comes with an answer to the poll for orders. It must not block. Nil takes none.
	Inquire func(protocol.Inquiry)
}

// Client of intake. Its methods are safe for concurrent use.
type Client struct {
	options Options

	mu     sync.Mutex
	bundle [sha256.Size]byte
	lines  *lines
	// seen is how new the newest orders were.
	seen revision.Revision
	// asked is the last inquiry that was heard.
	asked string
}

// lines to intake. Orders and reports have connections of their own: one that is shared would have the poll for orders, by which intake knows
// which replica serves a watchdog, go to another replica whenever a report ends after it. Answers make a new connection each, because another
// connection may reach another replica.
type lines struct{ orders, reports, answers *http.Client }

// NewClient makes a client; it does not connect.
func NewClient(o Options) *Client {
	o.URL = strings.TrimSuffix(o.URL, "/")
	return &Client{options: o}
}

// StatusError is an answer with an unexpected HTTP status.
type StatusError struct {
	// Code of HTTP.
	Code int
	// Message is the beginning of the body.
	Message string
	// Refused is the report that intake can never apply, if it names one: it has applied the reports before it.
	Refused *protocol.ReportAck
}

// errTooLarge is about reports that intake does not read.
var errTooLarge = errors.New("the reports are larger than intake takes")

// newStatusError reads what an answer says about its status.
func newStatusError(code int, body []byte) *StatusError {
	e := &StatusError{Code: code, Message: firstLine(body)}
	var r protocol.Problem
	if json.Unmarshal(body, &r) == nil && r.Error != "" {
		e.Message = firstLine([]byte(r.Error))
		if (code == http.StatusBadRequest || code == http.StatusConflict) && r.Sequence > 0 {
			e.Refused = &protocol.ReportAck{Epoch: r.Epoch, Sequence: r.Sequence}
		}
	}
	return e
}

// Error explains the status between a pod and its intake.
func (e *StatusError) Error() string {
	meaning := "intake failed"
	switch e.Code {
	case http.StatusTooEarly:
		meaning = "intake does not know this pod yet"
	case http.StatusUnauthorized:
		meaning = "intake does not accept the pod's token"
	case http.StatusForbidden:
		meaning = "intake accepts no reports of this pod: it is not the pod of the Feature's current attempt"
	case http.StatusRequestEntityTooLarge, http.StatusBadRequest:
		meaning = "intake cannot read what it was sent"
	case http.StatusConflict:
		meaning = "intake already has another report with this number"
	}
	if e.Message == "" {
		return fmt.Sprintf("%s (%d)", meaning, e.Code)
	}
	return fmt.Sprintf("%s (%d: %s)", meaning, e.Code, e.Message)
}

// ErrOlder is about orders that are older than ones that were received before.
var ErrOlder = errors.New("intake answered with orders that are older than those known")

// Orders returns the orders as they are now. With the ETag of known ones it waits until they differ, and returns (zero, etag, false) if
// they do not within wait. Orders never go back: it refuses orders that are older than any that this client has received with ErrOlder.
func (c *Client) Orders(ctx context.Context, etag string, wait time.Duration) (protocol.Orders, string, bool, error) {
	ctx, cancel := context.WithTimeout(ctx, wait+requestTimeout)
	defer cancel()
	url := c.options.URL + protocol.OrdersPath + "?" + protocol.VersionQuery + "=" + strconv.Itoa(protocol.OrdersVersion)
	if etag != "" {
		url += "&" + protocol.WaitQuery + "=" + strconv.Itoa(int(wait.Seconds())) + "&" + protocol.AskedQuery + "=" + neturl.QueryEscape(c.heard())
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return protocol.Orders{}, "", false, fmt.Errorf("make request for orders: %w", err)
	}
	if etag != "" {
		request.Header.Set("If-None-Match", etag)
	}
	if seen := c.newest(revision.Revision{}); seen != (revision.Revision{}) {
		request.Header.Set(protocol.RevisionHeader, seen.String())
	}
	answer, err := c.do(request, protocol.MaxOrdersBytes, func(l *lines) *http.Client { return l.orders })
	if err != nil {
		return protocol.Orders{}, "", false, fmt.Errorf("get orders: %w", err)
	}
	c.hear(answer.inquiry)
	if answer.code == http.StatusNotModified {
		c.newest(answer.revision)
		return protocol.Orders{}, etag, false, nil
	}
	if answer.revision.Behind(c.newest(revision.Revision{})) {
		return protocol.Orders{}, "", false, ErrOlder
	}
	orders, err := readOrders(answer.body)
	if err != nil {
		return protocol.Orders{}, "", false, err
	}
	c.newest(answer.revision)
	if answer.nextCheckpoint > 0 {
		orders.NextCheckpoint = answer.nextCheckpoint
	}
	return orders, answer.etag, true, nil
}

// newest notes how new orders are, and gives how new the newest were.
func (c *Client) newest(r revision.Revision) revision.Revision {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen = c.seen.Max(r)
	return c.seen
}

// readOrders reads orders of the version that this watchdog knows, and refuses others.
func readOrders(body []byte) (protocol.Orders, error) {
	var orders protocol.Orders
	if err := json.Unmarshal(body, &orders); err != nil {
		return protocol.Orders{}, fmt.Errorf("read orders: %w", err)
	}
	if orders.Version != protocol.OrdersVersion {
		return protocol.Orders{}, fmt.Errorf("orders have version %d, and this watchdog reads version %d", orders.Version, protocol.OrdersVersion)
	}
	return orders, nil
}

// Send delivers reports and says which ones are taken for good.
func (c *Client) Send(ctx context.Context, reports []protocol.Report) (protocol.ReportAck, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	body, err := json.Marshal(protocol.ReportBatch{Version: protocol.Version, Reports: reports})
	if err != nil {
		return protocol.ReportAck{}, fmt.Errorf("encode reports: %w", err)
	}
	if len(body) > protocol.MaxReportBytes { // the connection would break before there is an answer
		return protocol.ReportAck{}, errTooLarge
	}
	url := c.options.URL + protocol.ReportsPath
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return protocol.ReportAck{}, fmt.Errorf("make request for reports: %w", err)
	}
	request.Header.Set("Content-Type", "application/json")
	answer, err := c.do(request, 1<<16, func(l *lines) *http.Client { return l.reports })
	if err != nil {
		return protocol.ReportAck{}, fmt.Errorf("send reports: %w", err)
	}
	var ack protocol.ReportAck
	if err := json.Unmarshal(answer.body, &ack); err != nil {
		return protocol.ReportAck{}, fmt.Errorf("read acknowledgement: %w", err)
	}
	return ack, nil
}

// answer is what is read of a response.
type answer struct {
	code           int
	etag           string
	revision       revision.Revision
	nextCheckpoint int64
	inquiry        string
	body           []byte
}

// do adds the token, and takes 200 and 304 for an answer.
func (c *Client) do(request *http.Request, limit int64, over func(*lines) *http.Client) (answer, error) {
	if err := c.sign(request); err != nil {
		return answer{}, err
	}
	l, err := c.dial()
	if err != nil {
		return answer{}, err
	}
	response, err := over(l).Do(request)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, limit+1))
	if err != nil {
		return answer{}, fmt.Errorf("read answer: %w", err)
	}
	if int64(len(body)) > limit {
		return answer{}, fmt.Errorf("answer exceeds %d bytes", limit)
	}
	if code := response.StatusCode; code != http.StatusOK && code != http.StatusNotModified {
		return answer{}, newStatusError(code, body)
	}
	a := answer{code: response.StatusCode, etag: response.Header.Get("ETag"), inquiry: response.Header.Get(protocol.InquiryHeader), body: body}
	// What cannot be read is as good as missing.
	a.revision, _ = revision.Parse(response.Header.Get(protocol.RevisionHeader))
	a.nextCheckpoint, _ = strconv.ParseInt(response.Header.Get(protocol.NextCheckpointHeader), 10, 64)
	return a, nil
}

// sign adds the pod's token.
func (c *Client) sign(request *http.Request) error {
	token, err := os.ReadFile(c.options.TokenPath)
	if err != nil {
		return fmt.Errorf("read the pod's token: %w", err)
	}
	request.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	return nil
}

// dial gives the lines to intake, which connect when they are used. They are made again when the CA bundle has changed: the CA is rotated while pods
// run.
func (c *Client) dial() (*lines, error) {
	bundle, err := os.ReadFile(c.options.CAPath)
	if err != nil {
		return nil, fmt.Errorf("read CA bundle: %w", err)
	}
	sum := sha256.Sum256(bundle)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lines != nil && sum == c.bundle {
		return c.lines, nil
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(bundle) {
		return nil, errors.New("the CA bundle " + c.options.CAPath + " holds no certificate")
	}
	if c.lines != nil {
		c.lines.orders.CloseIdleConnections()
		c.lines.reports.CloseIdleConnections()
	}
	c.bundle = sum
	c.lines = &lines{orders: c.line(pool, false), reports: c.line(pool, false), answers: c.line(pool, true)}
	return c.lines, nil
}

func (c *Client) line(pool *x509.CertPool, fresh bool) *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			TLSClientConfig:       &tls.Config{RootCAs: pool, ServerName: c.options.ServerName, MinVersion: tls.VersionTLS13},
			TLSHandshakeTimeout:   10 * time.Second,
			IdleConnTimeout:       90 * time.Second,
			MaxIdleConns:          2,
			DisableKeepAlives:     fresh,
			ExpectContinueTimeout: expectTimeout,
		},
		// Intake never redirects; a server that does is not intake, and must not see the token.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// firstLine is the start of an error page, fit for a log.
func firstLine(body []byte) string {
	line, _, _ := strings.Cut(strings.TrimSpace(string(body)), "\n")
	return plain.CutBytes(line, 200)
}
