package main

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal/credential"
	"github.com/einmal-operators/einmal/credential/ssm"
	"github.com/einmal-operators/einmal/operators/tenant/names"
)

// everyApp returns the sorted names of all apps of the tenant: those in the spec and in the status, and those whose logins, users or
// credentials carry the mark of the tenant. An app that was removed under the deletionPolicy Retain is in neither the spec nor the status. If a
// system or the store cannot be searched, it returns an error beside the apps that it knows.
func (p *pass) everyApp(ctx context.Context) ([]string, error) {
	of := names.Tenant{Name: p.tenant.Name}
	var all []string
	for _, app := range p.tenant.Spec.Apps {
		all = append(all, app.Name)
	}
	for _, app := range p.tenant.Status.Apps {
		all = append(all, app.Name)
	}
	var marked []string
	var err error
	if p.store.apps != nil { // Tests have stores without it.
		marked, err = p.store.apps(ctx, of, p.owner)
	}
	if p.databases != nil {
		found, failed := p.databases.apps(ctx, p.owner(names.App{Tenant: of.Name}))
		marked, err = append(marked, found...), errors.Join(err, failed)
	}
	if p.cache != nil {
		found, failed := p.cache.apps(ctx, of, p.owner)
		marked, err = append(marked, found...), errors.Join(err, failed)
	}
	all = append(all, marked...)
	slices.Sort(all)
	return slices.Compact(all), err
}

// listPage is the number of Secrets in one page of a list.
const listPage = 500

// secretApps finds the apps of a tenant by the owner annotations of Secrets. It reads only metadata.
func secretApps(api client.Client, namespace string) func(context.Context, names.Tenant, func(names.App) credential.Owner) ([]string, error) {
	return func(ctx context.Context, of names.Tenant, owner func(names.App) credential.Owner) ([]string, error) {
		mark := owner(names.App{Tenant: of.Name}).String() + "/"
		var found []string
		secrets := &metav1.PartialObjectMetadataList{}
		secrets.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
		for more := true; more; more = secrets.Continue != "" {
			if err := api.List(ctx, secrets, client.InNamespace(namespace), client.Limit(listPage), client.Continue(secrets.Continue)); err != nil {
				return nil, fmt.Errorf("list Secrets in namespace %s: %w", namespace, err)
			}
			for _, secret := range secrets.Items {
				if app, ours := strings.CutPrefix(secret.Annotations[credential.OwnerAnnotation], mark); ours {
					found = append(found, app)
				}
			}
		}
		return found, nil
	}
}

// parameterApps finds the apps of a tenant by the parameters below its name, and reads the marks in their values.
func parameterApps(parameters *ssm.Store, at *store) func(context.Context, names.Tenant, func(names.App) credential.Owner) ([]string, error) {
	return func(ctx context.Context, of names.Tenant, owner func(names.App) credential.Owner) ([]string, error) {
		below, err := parameters.Below(ctx, path.Dir(path.Dir(at.database(of.App("any")))))
		if err != nil {
			return nil, err
		}
		var found []string
		for _, name := range below {
			app, _, _ := strings.Cut(name, "/")
			if slices.Contains(found, app) {
				continue
			}
			ours, err := at.owns(ctx, of.App(app), owner(of.App(app)))
			if err != nil {
				return nil, err
			}
			if ours {
				found = append(found, app)
			}
		}
		return found, nil
	}
}

// owns reports whether the store has a credential of an app with the owner's mark.
func (s *store) owns(ctx context.Context, app names.App, owner credential.Owner) (bool, error) {
	for _, record := range []string{s.database(app), s.cache(app)} {
		found, err := s.Read(ctx, record, owner, 1)
		switch {
		case errors.Is(err, credential.ErrInvalid), err == nil && len(found.Records) > 0:
			return true, nil
		case err != nil && !errors.Is(err, credential.ErrConflict):
			return false, err
		}
	}
	return false, nil
}
