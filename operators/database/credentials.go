package main

import (
	"context"

	"github.com/einmal-operators/einmal/credential"
	v1 "github.com/einmal-operators/einmal/operators/database/api/v1"
	"github.com/einmal-operators/einmal/operators/database/manifest"
)

// credentials are the passwords of a database.
type credentials struct {
	app, monitor credential.Record
	// secret is the Secret that err is about.
	secret string
	err    error
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
	} {
		record, err := credential.Once{
			Store: credential.Secrets{Client: c.Client, Namespace: c.Object.Namespace},
			Name:  one.secret, Owner: owner(c.Object), Username: one.username, Generation: known,
		}.Ensure(ctx)
		if err != nil {
			found.secret, found.err = one.secret, err
			return found
		}
		*one.into = record
	}
	return found
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
