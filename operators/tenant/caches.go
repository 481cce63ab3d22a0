package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"

	sdk "github.com/aws/aws-sdk-go-v2/service/elasticache"
	corev1 "k8s.io/api/core/v1"

	"github.com/einmal-operators/einmal/credential"
	v1 "github.com/einmal-operators/einmal/operators/tenant/api/v1"
	"github.com/einmal-operators/einmal/operators/tenant/elasticache"
	"github.com/einmal-operators/einmal/operators/tenant/names"
	"github.com/einmal-operators/einmal/operators/tenant/redis"
)

// cached returns the cache of a backend.
func (c *connector) cached(ctx context.Context, d declaration) (cache, error) {
	if of := d.Spec.Cache.ElastiCache; of != nil {
		return c.elastiCache(ctx, d.Name, of)
	}
	of := d.Spec.Cache.Redis
	username, err := value(d.Name, d.admin, corev1.BasicAuthUsernameKey)
	if err != nil {
		return nil, err
	}
	password, err := value(d.Name, d.admin, corev1.BasicAuthPasswordKey)
	if err != nil {
		return nil, err
	}
	wanted := redis.Config{Nodes: of.Nodes, Username: username.Reveal(), Password: password}
	if of.TLS {
		if wanted.TLS, err = encryptedBy(of.CABundle); err != nil {
			return nil, fmt.Errorf("spec.cache.redis.caBundle of TenantBackend %s: %w: %w", d.Name, errSetUp, err)
		}
	}
	nodes, err := redis.Open(wanted)
	if err != nil {
		return nil, fmt.Errorf("spec.cache.redis of TenantBackend %s: %w: %w", d.Name, errSetUp, err)
	}
	return redisCache{nodes}, nil
}

// encrypted returns a TLS configuration with the system's certificate authorities.
func encrypted() *tls.Config { return &tls.Config{MinVersion: tls.VersionTLS12} }

// encryptedBy returns a TLS configuration with the given certificate authorities, in PEM. "" means the system's.
func encryptedBy(authorities string) (*tls.Config, error) {
	config := encrypted()
	if authorities == "" {
		return config, nil
	}
	config.RootCAs = x509.NewCertPool()
	if !config.RootCAs.AppendCertsFromPEM([]byte(authorities)) {
		return nil, errors.New("no PEM certificate found")
	}
	return config, nil
}

// access returns the access of an app's cache user.
func access(of names.App, wants v1.App) redis.Access {
	return redis.Access{
		Profile: redis.Profile(wants.Cache.Profile), Prefix: of.KeyPrefix(wants.Cache.KeyPrefix), Scripting: wants.Cache.Scripting == v1.ScriptingAllowed,
	}
}

// redisCache is a Redis or Valkey.
type redisCache struct{ nodes *redis.Nodes }

func (r redisCache) users(of names.App, wants v1.App, spec v1.TenantSpec) (cacheUsers, string) {
	return redis.Users{
		Nodes: r.nodes, Terminate: spec.Credentials.Rotation.TerminateSessions,
		Access: access(of, wants),
	}, of.RedisUser()
}

func (r redisCache) apps(ctx context.Context, of names.Tenant, owner func(names.App) credential.Owner) ([]string, error) {
	return r.nodes.Apps(ctx, of, owner)
}

func (r redisCache) check(ctx context.Context) error { return r.nodes.Check(ctx) }

func (r redisCache) forgetful(ctx context.Context) ([]string, error) { return r.nodes.WithoutFile(ctx) }

func (r redisCache) close() error { return r.nodes.Close() }

// elastiCache returns an ElastiCache. Backends with the same settings share it.
func (c *connector) elastiCache(ctx context.Context, backend string, of *v1.ElastiCache) (cache, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	which := fmt.Sprintf("%+v", *of)
	if known := c.caches[which]; known != nil {
		return awsCache{known}, nil
	}
	account, err := awsConfig(ctx, of.Region)
	if err != nil {
		return nil, fmt.Errorf("spec.cache.elastiCache of TenantBackend %s: %w", backend, err)
	}
	wanted := elasticache.Config{
		Client: sdk.NewFromConfig(account, func(options *sdk.Options) { options.BaseEndpoint = endpoint(of.APIEndpoint) }),
		Groups: of.UserGroupIDs, Engine: of.Engine, Endpoint: of.Endpoint, Tags: map[string]string{"managed-by": identity},
	}
	if !of.Insecure {
		wanted.TLS = encrypted()
	}
	made, err := elasticache.Open(wanted)
	if err != nil {
		return nil, fmt.Errorf("spec.cache.elastiCache of TenantBackend %s: %w: %w", backend, errSetUp, err)
	}
	if c.caches == nil {
		c.caches = map[string]*elasticache.Cache{}
	}
	c.caches[which] = made
	return awsCache{made}, nil
}

// awsCache is an ElastiCache.
type awsCache struct{ cache *elasticache.Cache }

func (a awsCache) users(of names.App, wants v1.App, _ v1.TenantSpec) (cacheUsers, string) {
	return elasticache.Users{Cache: a.cache, Access: access(of, wants)}, of.ElastiCacheUser()
}

func (a awsCache) apps(ctx context.Context, of names.Tenant, owner func(names.App) credential.Owner) ([]string, error) {
	return a.cache.Apps(ctx, of, owner)
}

func (a awsCache) check(ctx context.Context) error { return a.cache.Check(ctx) }

// forgetful returns no nodes, because AWS stores the users.
func (awsCache) forgetful(context.Context) ([]string, error) { return nil, nil }

// close does nothing: other backends share the cache, and it keeps no connections.
func (awsCache) close() error { return nil }
