// Package crd holds the definition of the kind Database, as controller-gen writes it.
package crd

import _ "embed"

// YAML is the CustomResourceDefinition.
//
//go:embed database.einmal.dev_databases.yaml
var YAML []byte
