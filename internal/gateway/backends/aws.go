// Copyright The Tidewaiter Authors.
// SPDX-License-Identifier: Apache-2.0

package backends

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	awssdk "github.com/aws/aws-sdk-go-v2/aws"
	signer "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/config"
)

// awsService is what a signature is for.
// https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_InvokeModel.html
const awsService = "bedrock"

// aws signs requests, with a key or with the credentials of the gateway's pod.
type aws struct {
	region string
	signer *signer.Signer
	client *http.Client
	now    func() time.Time

	mu    sync.Mutex
	chain awssdk.CredentialsProvider
}

func newAWS(region string, r *route, o Options) *aws {
	return &aws{region: region, signer: signer.NewSigner(), client: r.tokens(), now: o.Now}
}

func (a *aws) grant(ctx context.Context, r *http.Request, body []byte, key string) error {
	if key != "" && !strings.HasPrefix(key, "{") {
		// An API key of Bedrock: https://docs.aws.amazon.com/bedrock/latest/userguide/api-keys-use.html
		r.Header.Set("Authorization", "Bearer "+key)
		return nil
	}
	credentials, err := a.credentials(ctx, key)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(body)
	if err := a.signer.SignHTTP(ctx, credentials, r, hex.EncodeToString(sum[:]), awsService, a.region, a.now()); err != nil {
		return fmt.Errorf("sign the request: %w", err)
	}
	return nil
}

// credentials in a key, or the pod's.
func (a *aws) credentials(ctx context.Context, key string) (awssdk.Credentials, error) {
	if key == "" {
		chain, err := a.podChain(ctx)
		if err != nil {
			return awssdk.Credentials{}, err
		}
		found, err := chain.Retrieve(ctx)
		if err != nil {
			return awssdk.Credentials{}, fmt.Errorf("the backend has no key, and the gateway's pod has no identity at AWS: %w", err)
		}
		return found, nil
	}
	// The names that the AWS command line gives them.
	var read struct{ AccessKeyID, SecretAccessKey, SessionToken string }
	if err := json.Unmarshal([]byte(key), &read); err != nil || read.AccessKeyID == "" || read.SecretAccessKey == "" {
		return awssdk.Credentials{}, errors.New(`the key is neither an API key of Bedrock nor JSON such as {"AccessKeyId": "…", "SecretAccessKey": "…"}`)
	}
	return awssdk.Credentials{AccessKeyID: read.AccessKeyID, SecretAccessKey: read.SecretAccessKey, SessionToken: read.SessionToken}, nil
}

// podChain finds the pod's credentials, and gets new ones before they end.
func (a *aws) podChain(ctx context.Context) (awssdk.CredentialsProvider, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.chain == nil {
		loaded, err := config.LoadDefaultConfig(ctx, config.WithRegion(a.region), config.WithHTTPClient(a.client))
		if err != nil {
			return nil, fmt.Errorf("cannot use the gateway's configuration of AWS: %w", err)
		}
		a.chain = loaded.Credentials
	}
	return a.chain, nil
}
