package main

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/credential"
	v1 "github.com/einmal-operators/einmal/operators/database/api/v1"
	"github.com/einmal-operators/einmal/operators/database/manifest"
)

// firstGeneration ends the name of the Secret with the first password. The Secret without it is its copy for apps.
const firstGeneration = ".g1"

// credentials are the passwords of a database. Those that cannot be read are zero.
type credentials struct {
	app, monitor, replication credential.Record
	// err is about the first Secret that cannot be read, whose name is secret.
	secret string
	err    error
	// passes is about one whose error passes by itself.
	passes error
	// versions are those of the Secrets when they were read last.
	versions []string
}

// ensureCredentials generates the passwords of a database, once. Known is the generation of the passwords that an existing database was created with,
// or 0: then they are generated.
func ensureCredentials(ctx context.Context, c *change, known int) credentials {
	var found credentials
	for _, one := range []struct {
		secret, username string
		into             *credential.Record
	}{
		{manifest.AppSecret(c.Object), c.Object.Spec.Auth.Username, &found.app},
		{manifest.MonitorSecret(c.Object), manifest.Monitor, &found.monitor},
		{manifest.ReplicationSecret(c.Object), manifest.Replication, &found.replication},
		{manifest.BackupSecret(c.Object), manifest.BackupUser, &credential.Record{}}, // Only Jobs use it.
	} {
		if !slices.Contains(manifest.Secrets(c.Object), one.secret) {
			continue
		}
		record, err := credential.Once{
			Store: credential.Secrets{Client: c.Client, Namespace: c.Object.Namespace},
			Name:  one.secret, Owner: owner(c.Object), Username: one.username, Generation: known,
		}.Ensure(ctx)
		found.missing(one.secret, err)
		*one.into = record
	}
	return found
}

// missing notes why a Secret cannot be read. The error is nil if it could.
func (c *credentials) missing(secret string, err error) {
	switch {
	case err == nil:
	case refusal(err) == nil:
		c.passes = err
	case c.err == nil:
		c.secret, c.err = secret, err
	}
}

// currentCredentials returns the passwords of a database. It reads the Secrets only if the cache shows that one of them has changed since the last call.
func currentCredentials(ctx context.Context, c *change, known int) credentials {
	versions, err := versionsOfSecrets(ctx, c)
	if err != nil {
		var found credentials
		found.missing(manifest.AppSecret(c.Object), err)
		return found
	}
	if last := einmal.Memo[findings](c).credentials; last.err == nil && last.passes == nil && last.app.Generation > 0 && slices.Equal(last.versions, versions) {
		return last
	}
	found := ensureCredentials(ctx, c, known)
	found.versions = versions
	return found
}

// versionsOfSecrets returns the uid and the version of each Secret of a database, from the cache of metadata.
func versionsOfSecrets(ctx context.Context, c *change) ([]string, error) {
	var versions []string
	for _, secret := range manifest.Secrets(c.Object) {
		for _, name := range []string{secret, secret + firstGeneration} {
			of := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}}
			found, err := get(ctx, c, name, of)
			if err != nil {
				return versions, err
			}
			if found == nil {
				found = of // It has no uid.
			}
			versions = append(versions, string(found.UID)+" "+found.ResourceVersion)
		}
	}
	return versions, nil
}

// owner marks the Secrets of a Database.
func owner(db *v1.Database) credential.Owner {
	return credential.Owner{Operator: identity, Namespace: db.Namespace, Name: db.Name}
}

// unlessBlocked returns an error that can pass by itself, so that the handler is called again. What a person must mend triggers the handler.
func unlessBlocked(err error) error {
	if credential.Blocked(err) {
		return nil
	}
	return err
}
