// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package backends

import (
	"bytes"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tidewaiter/tidewaiter/internal/core/models"
)

// secret stands in every key of these tests.
const secret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"

// TestSignatureOfAWS is that of a fixed time and of the credentials of AWS's own examples. Their secret is in no header.
// https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
func TestSignatureOfAWS(t *testing.T) {
	a := newAWS("us-east-1", &route{}, Options{Now: func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }})
	body := []byte(`{"anthropic_version":"bedrock-2023-05-31"}`)
	sign := func(key string) (http.Header, error) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://bedrock-runtime.us-east-1.amazonaws.com/model/anthropic.claude-v2%3A0/invoke", bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		return r.Header, a.grant(t.Context(), r, body, key)
	}
	header, err := sign(`{"AccessKeyId": "AKIAIOSFODNN7EXAMPLE", "SecretAccessKey": "` + secret + `", "SessionToken": "session"}`)
	const want = "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20260102/us-east-1/bedrock/aws4_request, SignedHeaders=content-length;content-type;host;x-amz-date;x-amz-security-token, Signature="
	if got := header.Get("Authorization"); err != nil || !strings.HasPrefix(got, want) || header.Get("X-Amz-Date") != "20260102T030405Z" || header.Get("X-Amz-Security-Token") != "session" {
		t.Errorf("%v, %v", header, err)
	} else if signature := strings.TrimPrefix(got, want); signature != signed {
		t.Errorf("the signature is %s, want %s", signature, signed)
	}
	if header, err := sign("an-api-key"); err != nil || header.Get("Authorization") != "Bearer an-api-key" {
		t.Errorf("an API key: %v, %v", header, err)
	}
	for _, key := range []string{`{"AccessKeyId": "` + secret + `"}`, `{"SecretAccessKey": "` + secret + `"`, `{"SecretAccessKey": 7, "x": "` + secret + `"}`} {
		if _, err := sign(key); err == nil || strings.Contains(err.Error(), secret) || !strings.Contains(err.Error(), "neither an API key of Bedrock nor JSON") {
			t.Errorf("%s: %v", key, err)
		}
	}
}

// signed was computed without the SDK, with HMAC-SHA256 over the canonical request, in which the path is escaped once more.
const signed = "e046df4afd42fd739001612a41c4adbe0bf14f56c485fa62c215d82d40dcb820"

// TestKeysOfGoogle: keys of service accounts alone are taken. Other kinds of credentials have the gateway read files, run programs and ask URLs.
func TestKeysOfGoogle(t *testing.T) {
	g := newGoogle(&route{})
	for name, key := range map[string]string{
		"a file":           `{"type":"external_account","audience":"` + secret + `","subject_token_type":"t","token_url":"https://sts.googleapis.com/v1/token","credential_source":{"file":"/var/run/secrets/token"}}`,
		"a user":           `{"type":"authorized_user","client_id":"a","client_secret":"` + secret + `","refresh_token":"c"}`,
		"an impersonation": `{"type":"impersonated_service_account","service_account_impersonation_url":"https://example.com/` + secret + `"}`,
		"no JSON":          secret,
		"cut off":          `{"type":"service_account","private_key":"` + secret,
	} {
		if _, err := g.source(key); err == nil || strings.Contains(err.Error(), secret) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestNothingOfAKeyIsInErrors, whatever is wrong with it.
func TestNothingOfAKeyIsInErrors(t *testing.T) {
	backend := models.Backend{Name: "main", BaseURL: "https://api.example.com", ClientCertificate: "certificate", Proxy: "http://127.0.0.1:1", ProxyKey: "proxy", Key: "key"}
	_, err := New(backend, map[string]string{"certificate": "-----BEGIN PRIVATE KEY-----\n" + secret}, Options{})
	if err == nil || strings.Contains(err.Error(), secret) || !strings.HasPrefix(err.Error(), "clientCertificate: ") {
		t.Errorf("%v", err)
	}
	backend.ClientCertificate = ""
	c, err := New(backend, map[string]string{"proxy": "user:" + secret}, Options{})
	if err != nil || len(c.Missing()) != 1 || c.Missing()[0] != "key" {
		t.Fatalf("%v, missing %v", err, c.Missing())
	}
	defer c.Close()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://api.example.com/v1/messages", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	answer, _, err := c.Do(r, messagesDialect(), secret, nil)
	if err == nil || strings.Contains(err.Error(), secret) || answer != nil {
		t.Errorf("%v", err)
	}
	vertex, err := New(models.Backend{Name: "vertex", Kind: "vertex", BaseURL: "https://vertex.example.com"}, nil, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer vertex.Close()
	_, _, err = vertex.Do(r, messagesDialect(), `{"type":"service_account","private_key":"`+secret+`","client_email":"a@example.com"}`, nil)
	if _, is := errors.AsType[*CredentialError](err); !is || strings.Contains(err.Error(), secret) {
		t.Errorf("%v", err)
	}
}
