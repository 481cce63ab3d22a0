package elasticache

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/einmal-operators/einmal/credential"
)

// login verifies a password. It is Refused only if the cache itself says that it is wrong.
func (c *Cache) login(ctx context.Context, username string, password credential.Password) (credential.State, error) {
	const timeout = 5 * time.Second
	client := redis.NewClient(&redis.Options{
		Addr: c.config.Endpoint, TLSConfig: c.config.TLS, DialTimeout: timeout, ReadTimeout: timeout, WriteTimeout: timeout, ContextTimeoutEnabled: true,
		Protocol: 2, PoolSize: 1, MaxRetries: -1, DialerRetries: 1, DisableIdentity: true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	defer func() { _ = client.Close() }()
	err := client.Do(ctx, "AUTH", username, password.Reveal()).Err()
	switch {
	case err == nil:
		return credential.Accepted, nil
	case strings.HasPrefix(err.Error(), "WRONGPASS"):
		return credential.Refused, nil
	default:
		return "", fmt.Errorf("log in to ElastiCache at %s as %s: %w", c.config.Endpoint, username, err)
	}
}
