package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/einmal-operators/einmal/operators/database/api/v1"
	"github.com/einmal-operators/einmal/operators/database/manifest"
)

// images are the images of the containers of all Databases.
type images struct {
	// postgresql and mariadb are the images of the servers, in which {version} stands for the version.
	postgresql, mariadb string
	// operator is the image of the operator, or "" if that of its own Pod is to be used.
	operator string
}

// container is the name of the operator's container in its Pod: see config/deploy/deployment.yaml.
const container = "database"

// errImageUnknown reports that the operator does not know its own image.
var errImageUnknown = errors.New("spec.backup.s3 and fromBackup.s3 need the image of the operator, which does not know it: set its flag --operator-image, " +
	"or run it in a container " + container + " with the variables POD_NAME and POD_NAMESPACE, as its Deployment does")

// ofServers returns the image of the servers of a Database that run a version.
func (i images) ofServers(db *v1.Database, version string) string {
	pattern := i.postgresql
	switch {
	case db.Spec.Image != "":
		return db.Spec.Image
	case db.Spec.Engine == v1.MariaDB:
		pattern = i.mariadb
	}
	return strings.ReplaceAll(pattern, "{version}", version)
}

// ofOperator returns the image of the operator. Only a Database with a bucket needs it.
func (i images) ofOperator(ctx context.Context, c *change) (string, error) {
	namespace, name := os.Getenv("POD_NAMESPACE"), os.Getenv("POD_NAME")
	switch {
	case i.operator != "":
		return i.operator, nil
	case namespace == "" || name == "":
		return "", errImageUnknown
	}
	var own corev1.Pod
	if err := c.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &own); err != nil {
		return "", fmt.Errorf("read the Pod %s of the operator: %w", name, err)
	}
	for _, one := range own.Spec.Containers {
		if one.Name == container {
			return one.Image, nil
		}
	}
	return "", errImageUnknown
}

// ofBackups returns the images of the containers that make backups.
func (i images) ofBackups(ctx context.Context, c *change) (manifest.Images, error) {
	found := manifest.Images{Server: c.Object.Status.Image}
	if c.Object.Spec.Backup.S3 == nil {
		return found, nil
	}
	var err error
	found.Operator, err = i.ofOperator(ctx, c)
	return found, err
}
