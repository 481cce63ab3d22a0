package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

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

// connector prepares the connections of backends.
type connector struct {
	mu sync.Mutex
	// limits are those of the requests to SSM: all stores of a region share them.
	limits map[string]*ssm.Limits
	// caches are those of AWS: all backends of a cache share one, so that its groups have one writer.
	caches map[string]*elasticache.Cache
	// watches are those of Secrets; nil for none.
	watches *secretWatches
}

// connect prepares the connections that a backend declares. It makes none: what cannot be reached is told by who needs it.
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
			return nil, fmt.Errorf("the Secret %s/%s of TenantBackend %s: %w: %w", d.dsn.Namespace, d.dsn.Name, d.Name, errSetUp, err)
		}
		made.databases = postgresServer{server}
		made.unverified = server.Unverified()
	}
	if d.Spec.Cache != nil {
		made.unverified = append(made.unverified, unverifiedCache(d.Spec.Cache)...)
		if made.cache, err = c.cached(ctx, d); err != nil {
			_ = made.close() // Nothing was done with it.
			return nil, err
		}
	}
	return made, nil
}

// stored is the store of credentials.
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
	made := store{
		Store:    parameters,
		database: func(app names.App) string { return strings.TrimPrefix(app.DatabaseRecord(""), "/") },
		cache:    func(app names.App) string { return strings.TrimPrefix(app.CacheRecord(""), "/") },
		prefix:   of.Prefix + "/",
	}
	made.apps = parameterApps(parameters, &made)
	return made, nil
}

// limitsOf are the limits that all stores of a region share.
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

// awsTimeout is how long AWS has for an answer. The SDK alone would wait for one that never comes.
const awsTimeout = 30 * time.Second

// awsConfig is the account that the process has, as the SDK finds it, in a region.
func awsConfig(ctx context.Context, region string) (aws.Config, error) {
	account, err := config.LoadDefaultConfig(ctx, config.WithRegion(region), config.WithHTTPClient(awshttp.NewBuildableClient().WithTimeout(awsTimeout)))
	if err != nil {
		return aws.Config{}, fmt.Errorf("look for an AWS account: %w", err)
	}
	account.HTTPClient = &guardedClient{next: account.HTTPClient} // From now on: to load the account, the SDK needs a client of its own type.
	account.Credentials = aws.NewCredentialsCache(identityOf{account.Credentials})
	return account, nil
}

// guardedClient is an HTTP client whose requests fail at once while their host does not answer.
type guardedClient struct {
	next aws.HTTPClient
	// hosts are the breakers by host.
	hosts sync.Map
}

// Do sends a request. The SDK does not retry one that was not sent because of the breaker.
func (g *guardedClient) Do(request *http.Request) (answer *http.Response, err error) {
	found, _ := g.hosts.LoadOrStore(request.URL.Host, &breaker.Breaker{})
	host, _ := found.(*breaker.Breaker)
	unanswered := func(error) bool { return true }
	err = host.Do(request.Context(), unanswered, func() error {
		answer, err = g.next.Do(request) //nolint:bodyclose // The caller closes it.
		return err
	})
	return answer, err
}

// identityOf says what to do where the process has no identity in AWS. The SDK tells of the last place where it has looked for one.
type identityOf struct{ aws.CredentialsProvider }

func (i identityOf) Retrieve(ctx context.Context) (aws.Credentials, error) {
	found, err := i.CredentialsProvider.Retrieve(ctx)
	if err != nil {
		return found, fmt.Errorf("the operator has no identity in AWS: annotate its ServiceAccount for IRSA, or use Pod Identity: %w", err)
	}
	return found, nil
}

// endpoint is a URL in place of the region's, if one was given.
func endpoint(given string) *string {
	if given == "" {
		return nil
	}
	return &given
}

// value is a value of a Secret that a TenantBackend names.
func value(backend string, from *corev1.Secret, key string) (credential.Password, error) {
	if len(from.Data[key]) == 0 {
		return credential.Password{}, fmt.Errorf("the TenantBackend %s needs %q in the Secret %s/%s: %w; add it", backend, key, from.Namespace, from.Name, errSetUp)
	}
	return credential.NewPassword(string(from.Data[key])), nil
}
