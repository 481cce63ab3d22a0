package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	awsssm "github.com/aws/aws-sdk-go-v2/service/ssm"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal/credential"
	"github.com/einmal-operators/einmal/credential/ssm"
	v1 "github.com/einmal-operators/einmal/operators/tenant/api/v1"
	"github.com/einmal-operators/einmal/operators/tenant/breaker"
	"github.com/einmal-operators/einmal/operators/tenant/elasticache"
	"github.com/einmal-operators/einmal/operators/tenant/names"
	"github.com/einmal-operators/einmal/operators/tenant/postgres"
)

// connector creates the clients of backends.
type connector struct {
	mu sync.Mutex
	// limits are the request limits of SSM, shared by all stores of a region.
	limits map[string]*ssm.Limits
	// caches are the ElastiCache caches. All backends of a cache share one, so that each user group has one writer.
	caches map[string]*elasticache.Cache
	// watches are the watches of Secrets. It is nil for none.
	watches *secretWatches
}

// connect creates the clients that a backend needs. It opens no connections, so unreachable systems are reported by the first call that
// uses them.
func (c *connector) connect(ctx context.Context, d declaration, api client.Client) (*backend, error) {
	made := &backend{clusterID: d.clusterID, plans: d.Spec.Plans}
	var err error
	if made.store, err = c.stored(ctx, d, api); err != nil {
		return nil, err
	}
	if of := d.Spec.Postgres; of != nil {
		dsn, err := value(d.Name, d.dsn, of.DSNSecretRef.Key)
		if err != nil {
			return nil, err
		}
		server, err := postgres.Open(postgres.Config{DSN: dsn, PoolSize: of.PoolSize}) //nolint:contextcheck // Connections outlive the handler.
		if err != nil {
			return nil, fmt.Errorf("secret %s/%s of TenantBackend %s: %w: %w", d.dsn.Namespace, d.dsn.Name, d.Name, errSetUp, err)
		}
		made.databases = postgresServer{server}
		made.unverified = server.Unverified()
	}
	if d.Spec.Cache != nil {
		made.unverified = append(made.unverified, unverifiedCache(d.Spec.Cache)...)
		if made.cache, err = c.cached(ctx, d); err != nil {
			_ = made.close() // It was not used yet.
			return nil, err
		}
	}
	return made, nil
}

// stored returns the credential store of a backend.
func (c *connector) stored(ctx context.Context, d declaration, api client.Client) (store, error) {
	if of := d.Spec.Store.Secret; of != nil {
		secrets := credential.Secrets{Client: api, Namespace: of.Namespace}
		return store{
			Store: secrets, database: names.App.DatabaseSecret, cache: names.App.CacheSecret, apps: secretApps(api, of.Namespace),
			generation: secrets.Generation, watch: c.watches.in(ctx, api, of.Namespace),
		}, nil
	}
	of := d.Spec.Store.SSM
	account, err := awsConfig(ctx, of.Region)
	if err != nil {
		return store{}, fmt.Errorf("spec.store.ssm of TenantBackend %s: %w", d.Name, err)
	}
	parameters, err := ssm.New(ssm.Options{
		Client: awsssm.NewFromConfig(account, func(options *awsssm.Options) { options.BaseEndpoint = endpoint(of.APIEndpoint) }),
		Prefix: of.Prefix, KeyID: of.KMSKeyID, Tier: of.Tier, Tags: of.Tags, Limits: c.limitsOf(of),
	})
	if err != nil {
		return store{}, fmt.Errorf("spec.store.ssm of TenantBackend %s: %w: %w", d.Name, errSetUp, err)
	}
	made := store{Store: parameters, database: names.App.DatabaseRecord, cache: names.App.CacheRecord, prefix: of.Prefix + "/"}
	made.apps = parameterApps(parameters, &made)
	return made, nil
}

// limitsOf returns the limits that all stores of a region share.
func (c *connector) limitsOf(of *v1.SSMStore) *ssm.Limits {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.limits == nil {
		c.limits = map[string]*ssm.Limits{}
	}
	where := of.Region + " " + of.APIEndpoint
	if c.limits[where] == nil {
		c.limits[where] = ssm.DefaultLimits()
	}
	return c.limits[where]
}

// awsTimeout limits a request to AWS. The SDK has no limit of its own.
const awsTimeout = 30 * time.Second

// awsConfig returns the configuration that the SDK finds for this process, for a region.
func awsConfig(ctx context.Context, region string) (aws.Config, error) {
	account, err := config.LoadDefaultConfig(ctx, config.WithRegion(region), config.WithHTTPClient(awshttp.NewBuildableClient().WithTimeout(awsTimeout)))
	if err != nil {
		return aws.Config{}, fmt.Errorf("load the AWS configuration: %w", err)
	}
	account.HTTPClient = &guardedClient{next: account.HTTPClient} // Set after loading, because loading requires a client of the SDK's own type.
	account.Credentials = aws.NewCredentialsCache(identityOf{account.Credentials})
	return account, nil
}

// guardedClient is an HTTP client whose requests fail immediately while their host does not answer.
type guardedClient struct {
	next aws.HTTPClient
	// hosts maps host names to breakers.
	hosts sync.Map
}

// Do sends a request. The SDK does not retry a request that the breaker rejected.
func (g *guardedClient) Do(request *http.Request) (answer *http.Response, err error) {
	found, _ := g.hosts.LoadOrStore(request.URL.Host, breaker.New())
	host, _ := found.(*breaker.Breaker)
	unanswered := func(error) bool { return true }
	err = breaker.Do(request.Context(), host, unanswered, func() error {
		answer, err = g.next.Do(request) //nolint:bodyclose // The caller closes it.
		return err
	})
	return answer, err
}

// identityOf adds a remedy to the error of a process without an AWS identity. The SDK's error only names the last source that it tried.
type identityOf struct{ aws.CredentialsProvider }

func (i identityOf) Retrieve(ctx context.Context) (aws.Credentials, error) {
	found, err := i.CredentialsProvider.Retrieve(ctx)
	if err != nil {
		return found, fmt.Errorf("the operator has no AWS identity; annotate its ServiceAccount for IRSA, or use Pod Identity: %w", err)
	}
	return found, nil
}

// endpoint returns the URL of an API endpoint, or nil for that of the region.
func endpoint(given string) *string {
	if given == "" {
		return nil
	}
	return &given
}

// value returns the value of a key in a Secret that a TenantBackend names, without a line break at the end: a file or echo adds one. Other control
// characters are refused, because a server would only answer that the password is wrong.
func value(backend string, from *corev1.Secret, key string) (credential.Password, error) {
	text, _ := strings.CutSuffix(string(from.Data[key]), "\n")
	text, _ = strings.CutSuffix(text, "\r")
	if text == "" {
		return credential.Password{}, fmt.Errorf("TenantBackend %s: key %q is missing or empty in Secret %s/%s: %w; add the key",
			backend, key, from.Namespace, from.Name, errSetUp)
	}
	if strings.ContainsFunc(text, unicode.IsControl) {
		return credential.Password{}, fmt.Errorf("TenantBackend %s: the value of key %q in Secret %s/%s contains a line break or another control character: "+
			"%w; write the value on one line, without tabs; one line break at its end is allowed", backend, key, from.Namespace, from.Name, errSetUp)
	}
	return credential.NewPassword(text), nil
}
