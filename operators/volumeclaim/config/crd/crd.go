// Package crd holds the definition of the kind EphemeralVolumeClaim, as controller-gen writes it.
package crd

import _ "embed"

// YAML is the CustomResourceDefinition.
//
//go:embed volumeclaim.einmal.dev_ephemeralvolumeclaims.yaml
var YAML []byte
